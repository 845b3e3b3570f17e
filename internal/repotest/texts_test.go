package repotest

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// places are paths and settings that are true on one machine only, placeParts what each of them has one of.
var (
	places     = regexp.MustCompile(`(^|[^\w./~*-])/(root|work|home/\w+)/|\bGOPROXY=|--index-url\b`)
	placeParts = []string{"/root/", "/work/", "/home/", "GOPROXY=", "--index-url"}
)

// machine refuses what is true on one machine only. This folder has such names to find them by.
func machine(r *tree) (broken []string) {
	for _, name := range slices.Sorted(maps.Keys(r.texts)) {
		if strings.HasPrefix(name, "internal/repotest/") {
			continue
		}
		for line, found := range grep(r.texts[name], places, placeParts) {
			broken = append(broken, fmt.Sprintf("%s:%d: %q is true on one machine only", name, line, strings.TrimSpace(found)))
		}
	}
	return broken
}

// grep gives the lines of a text that match, counted from 1, and the first match in each. Golden files are large and a
// pattern is slow, so it is tried only on lines that have one of its parts.
func grep(text string, pattern *regexp.Regexp, parts []string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		has := func(s string) bool {
			return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
		}
		if !has(text) {
			return
		}
		for i, line := range lines(text) {
			if has(line) && pattern.MatchString(line) && !yield(i+1, pattern.FindString(line)) {
				return
			}
		}
	}
}

func lines(text string) []string { return strings.Split(text, "\n") }

// goMod refuses what makes a module another one for those who depend on it.
func goMod(r *tree) (broken []string) {
	for i, line := range lines(r.texts["go.mod"]) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word == "replace" || word == "exclude" {
			broken = append(broken, fmt.Sprintf("go.mod:%d: no %s: whoever imports this module would get another one than we test", i+1, word))
		}
	}
	return broken
}
