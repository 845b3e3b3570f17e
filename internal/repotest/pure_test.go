package repotest

import (
	"go/ast"
	"slices"
	"strings"
)

// purePackages compute from what they are given. The same arguments give the same result, byte for byte.
var purePackages = []string{"geo", "health", "kube/gpu", "plan", "plan/flow", "policies", "world", "xds", "xds/build", "xds/verify"}

// impureImports are what a pure package has no use for, packages below included, with the reason.
var impureImports = map[string]string{
	"context":                "nothing in a pure package waits",
	"crypto/rand":            "the same input must give the same bytes",
	"github.com/prometheus":  "metrics are for the wiring",
	"golang.org/x/sync":      "values are not shared while they change, so there is nothing to lock",
	"google.golang.org/grpc": "a pure package speaks to nobody",
	"log":                    "what there is to say is in the result",
	"math/rand":              "the same input must give the same bytes",
	"net":                    "a pure package speaks to nobody",
	"os":                     "what there is to know comes in as arguments",
	"sync":                   "values are not shared while they change, so there is nothing to lock",
	"syscall":                "what there is to know comes in as arguments",
}

// pureNet are the packages below net that are only about values.
var pureNet = []string{"net/netip", "net/url"}

// clock are the functions of package time that look at the clock.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// pure keeps clocks, chance, goroutines, locks and the outside world out of the pure packages.
func pure(r *tree) (broken []string) {
	for _, p := range r.packages {
		if !slices.Contains(purePackages, p.dir) {
			continue
		}
		for _, f := range p.sources() {
			broken = append(broken, r.impureImports(p, f)...)
			broken = append(broken, r.impureCode(p, f)...)
		}
	}
	return broken
}

func (r *tree) impureImports(p *pkg, f *file) (broken []string) {
	for _, spec := range f.Imports {
		name := importPath(spec.Path.Value)
		for impure, why := range impureImports {
			if (name == impure || strings.HasPrefix(name, impure+"/")) && !slices.Contains(pureNet, name) {
				broken = append(broken, r.at(spec.Pos(), "%s is pure and must not import %s: %s", p.dir, name, why))
			}
		}
	}
	return broken
}

func (r *tree) impureCode(p *pkg, f *file) (broken []string) {
	ast.Inspect(f.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			broken = append(broken, r.at(n.Pos(), "%s is pure and must not start a goroutine: its caller could not tell when it is done", p.dir))
		case *ast.SelectStmt:
			broken = append(broken, r.at(n.Pos(), "%s is pure and must not select: nothing in a pure package waits", p.dir))
		case *ast.SelectorExpr:
			if isFunc(n, "time", clock...) {
				broken = append(broken, r.at(n.Pos(), "%s is pure and must not call time.%s: time comes in as an argument", p.dir, n.Sel.Name))
			}
		}
		return true
	})
	return broken
}

// isFunc tells whether an expression names one of a package's functions. Packages are imported by their own names here.
func isFunc(e ast.Expr, of string, funcs ...string) bool {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := selector.X.(*ast.Ident)
	return ok && x.Name == of && slices.Contains(funcs, selector.Sel.Name)
}
