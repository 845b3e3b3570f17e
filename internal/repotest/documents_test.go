package repotest

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const architectureFile = "docs/architecture.md"

var (
	backticked = regexp.MustCompile("`([^`\n]+)`")
	fenced     = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```")
	folderLike = regexp.MustCompile(`^[a-z][a-z0-9]*(/[a-z0-9.]+)*$`)
)

// architecture holds the text to the packages that there are: it names all of them, and no others. `folder/...` names
// all below a folder.
func architecture(r *tree) (broken []string) {
	text, ok := r.texts[architectureFile]
	if !ok {
		return nil
	}
	var dirs, named []string
	for _, p := range r.packages {
		dirs = append(dirs, p.dir)
	}
	for i, line := range lines(text) {
		for _, m := range backticked.FindAllStringSubmatch(line, -1) {
			if !folderLike.MatchString(m[1]) {
				continue
			}
			named = append(named, m[1])
			if looksLikePackage(r, m[1]) && !exists(r, m[1]) {
				broken = append(broken, fmt.Sprintf("%s:%d: there is no %s", architectureFile, i+1, m[1]))
			}
		}
	}
	for _, dir := range dirs {
		if !matches(named, dir) {
			broken = append(broken, fmt.Sprintf("%s:1: package %s is not named: say where in the flow it stands", architectureFile, dir))
		}
	}
	return broken
}

// looksLikePackage tells whether a word in backticks means a folder: it has a row, or stands below a folder that has.
func looksLikePackage(r *tree, word string) bool {
	if _, ok := layers[word]; ok {
		return true
	}
	top, _, below := strings.Cut(word, "/")
	return below && slices.ContainsFunc(r.packages, func(p *pkg) bool { return p.dir == top || strings.HasPrefix(p.dir, top+"/") })
}

// exists tells whether a path is a file, a folder with one, or "folder/..." with one.
func exists(r *tree, name string) bool {
	folder := strings.TrimSuffix(name, "/...") + "/"
	for file := range r.texts {
		if file == name || strings.HasPrefix(file, folder) {
			return true
		}
	}
	return false
}

var (
	makeCommand     = regexp.MustCompile(`(?:^|[\s(;&])make ([a-z][a-z-]*)`)
	meridianCommand = regexp.MustCompile(`(?:^|[\s(;&/])meridian ([a-z][a-z-]*)`)
)

// commands holds documents to the commands that there are: `make X` has a target, `meridian X` a verb.
func commands(r *tree) (broken []string) {
	targets, verbs := r.makeTargets(), r.verbs()
	for _, name := range slices.Sorted(maps.Keys(r.texts)) {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, code := range codeIn(r.texts[name]) {
			for _, m := range makeCommand.FindAllStringSubmatch(code, -1) {
				if !slices.Contains(targets, m[1]) {
					broken = append(broken, fmt.Sprintf("%s: the Makefile has no target for `make %s`", name, m[1]))
				}
			}
			for _, m := range meridianCommand.FindAllStringSubmatch(code, -1) {
				if len(verbs) > 0 && !slices.Contains(verbs, m[1]) {
					broken = append(broken, fmt.Sprintf("%s: cmd/meridian has no verb for `meridian %s`", name, m[1]))
				}
			}
		}
	}
	return broken
}

// codeIn are the lines in fences, and what is in backticks outside of them.
func codeIn(text string) (code []string) {
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		code = append(code, lines(m[1])...)
	}
	for _, m := range backticked.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		code = append(code, m[1])
	}
	return code
}

var target = regexp.MustCompile(`(?m)^([a-z][a-z-]*):.*$`)

// makeTargets are the targets of the Makefile.
func (r *tree) makeTargets() (all []string) {
	for _, m := range target.FindAllStringSubmatch(r.texts["Makefile"], -1) {
		all = append(all, m[1])
	}
	return all
}

// targets wants every target of the Makefile to say in `make help` what it does.
func targets(r *tree) (broken []string) {
	for _, m := range target.FindAllStringSubmatch(r.texts["Makefile"], -1) {
		if !strings.Contains(m[0], " ## ") {
			broken = append(broken, fmt.Sprintf("Makefile: target %s has no ## comment, so `make help` does not show it", m[1]))
		}
	}
	return broken
}

// verbs are the commands of cmd/meridian, from the Use fields of its cobra commands, and those that cobra adds.
func (r *tree) verbs() (all []string) {
	i := slices.IndexFunc(r.packages, func(p *pkg) bool { return p.dir == "cmd/meridian" })
	if i < 0 {
		return nil
	}
	for _, f := range r.packages[i].sources() {
		ast.Inspect(f.File, func(n ast.Node) bool {
			field, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			key, isName := field.Key.(*ast.Ident)
			value, isText := field.Value.(*ast.BasicLit)
			if isName && isText && key.Name == "Use" {
				use, _ := strconv.Unquote(value.Value) // the parser has checked it
				verb, _, _ := strings.Cut(use, " ")
				all = append(all, verb)
			}
			return true
		})
	}
	return append(all, "completion", "help")
}
