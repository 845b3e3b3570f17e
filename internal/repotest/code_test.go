package repotest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	marks    = []string{"TODO", "FIXME", "XXX"}
	markWord = regexp.MustCompile(`\b(` + strings.Join(marks, "|") + `)\b`)
)

// unfinished refuses marks of work left undone: in Go comments, and in every line of scripts and configuration.
func unfinished(r *tree) (broken []string) {
	const why = "it is done, or it is an issue"
	for _, p := range r.packages {
		for _, f := range p.files {
			for _, group := range f.Comments {
				if mark := markWord.FindString(group.Text()); mark != "" {
					broken = append(broken, r.at(group.Pos(), "%s: %s", mark, why))
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.texts)) {
		if !slices.Contains([]string{".sh", ".yaml", ".yml", ""}, path.Ext(name)) || path.Base(name) == "LICENSE" {
			continue
		}
		for line, mark := range grep(r.texts[name], markWord, marks) {
			broken = append(broken, fmt.Sprintf("%s:%d: %s: %s", name, line, mark, why))
		}
	}
	return broken
}

// wrapping wants errors in errors wrapped by %w, so that errors.Is sees the cause.
func wrapping(r *tree) (broken []string) {
	for _, p := range r.packages {
		for _, f := range p.files {
			ast.Inspect(f.File, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if ok && isFunc(call.Fun, "fmt", "Errorf") {
					broken = append(broken, r.flattened(call)...)
				}
				return true
			})
		}
	}
	return broken
}

// verbs finds the verbs of a format. Formats with explicit argument indexes are not used here.
var verbs = regexp.MustCompile(`%[-+# 0-9.]*([a-zA-Z%])`)

// flattened finds the errors among the operands of fmt.Errorf that have another verb than %w.
func (r *tree) flattened(call *ast.CallExpr) (broken []string) {
	format, ok := call.Args[0].(*ast.BasicLit)
	if !ok || format.Kind != token.STRING {
		return nil
	}
	text, _ := strconv.Unquote(format.Value) // the parser has checked it
	found := slices.DeleteFunc(verbs.FindAllStringSubmatch(text, -1), func(m []string) bool { return m[1] == "%" })
	for i, operand := range call.Args[1:] {
		if i < len(found) && found[i][1] != "w" && looksLikeError(operand) {
			broken = append(broken, r.at(operand.Pos(), "an error must be wrapped with %%w, not %s: its cause must stay visible to errors.Is", found[i][0]))
		}
	}
	return broken
}

// looksLikeError goes by name; the linters of `make lint` know the types.
func looksLikeError(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "err" || strings.HasSuffix(e.Name, "Err")
	case *ast.SelectorExpr:
		return looksLikeError(e.Sel)
	case *ast.CallExpr:
		selector, ok := e.Fun.(*ast.SelectorExpr)
		return ok && (selector.Sel.Name == "Err" || selector.Sel.Name == "Error" && looksLikeError(selector.X))
	}
	return false
}

// sleeping refuses sleeps: in a test they are too short on a slow machine and too long on a fast one, elsewhere they
// cannot be cancelled. In a bubble of testing/synctest time is not real, and a sleep takes none.
func sleeping(r *tree) (broken []string) {
	for _, p := range r.packages {
		for _, f := range p.files {
			if slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` }) {
				continue
			}
			ast.Inspect(f.File, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && isFunc(call.Fun, "time", "Sleep") {
					broken = append(broken, r.at(call.Pos(), "do not sleep: wait for what must happen, with a context"))
				}
				return true
			})
		}
	}
	return broken
}

// leaks wants each package that starts goroutines to prove in its tests that none is left.
func leaks(r *tree) (broken []string) {
	for _, p := range r.packages {
		var started token.Pos
		checked, tested := false, false
		for _, f := range p.files {
			tested = tested || f.test
			ast.Inspect(f.File, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					if !f.test && !started.IsValid() {
						started = n.Pos()
					}
				case *ast.CallExpr:
					checked = checked || isFunc(n.Fun, "goleak", "VerifyTestMain")
				}
				return true
			})
		}
		if started.IsValid() && tested && !checked {
			broken = append(broken, r.at(started, "%s starts a goroutine, and its tests do not call goleak.VerifyTestMain: one that is left behind would not be seen", p.dir))
		}
	}
	return broken
}
