package repotest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// places are paths and hosts that are true on one machine only.
var places = regexp.MustCompile(`(^|[^\w./~*-])/(work|root|home/\w+)/|/tmp/brief|\b(proxy\.golang\.org|pypi\.org|registry\.npmjs\.org|static\.crates\.io|deb\.debian\.org)\b`)

// machine refuses what is true on one machine only. This folder has such names to find them by.
func machine(r *tree) (broken []string) {
	for _, name := range slices.Sorted(maps.Keys(r.texts)) {
		if strings.HasPrefix(name, "internal/repotest/") {
			continue
		}
		for i, line := range lines(r.texts[name]) {
			if found := places.FindString(line); found != "" {
				broken = append(broken, fmt.Sprintf("%s:%d: %q is true on one machine only", name, i+1, strings.TrimSpace(found)))
			}
		}
	}
	return broken
}

// goMod refuses what makes a module another one for those who depend on it.
func goMod(r *tree) (broken []string) {
	for i, line := range lines(r.texts["go.mod"]) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word == "replace" || word == "exclude" {
			broken = append(broken, fmt.Sprintf("go.mod:%d: no %s: whoever imports this module would get another one than we test", i+1, word))
		}
	}
	return broken
}
