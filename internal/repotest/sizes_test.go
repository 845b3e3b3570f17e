package repotest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// The budgets. They show where to look; they are not a measure of what is good.
const (
	mostFunctionLines   = 100
	mostFileLines       = 500
	mostParameters      = 5
	halfOfFunctionLines = 10
	nineInTenLines      = 40
)

// sizes bounds files, functions and parameter lists. What is generated is not for reading.
func sizes(r *tree) (broken []string) {
	for _, p := range r.packages {
		for _, f := range p.files {
			if ast.IsGenerated(f.File) {
				continue
			}
			if n := strings.Count(r.texts[f.path], "\n"); n > mostFileLines {
				broken = append(broken, fmt.Sprintf("%s:%d: a file of %d lines has more than one subject; at most %d", f.path, n, n, mostFileLines))
			}
			for _, d := range f.functions() {
				broken = append(broken, r.oversized(d)...)
			}
		}
	}
	return broken
}

func (r *tree) oversized(d *ast.FuncDecl) (broken []string) {
	if n := r.lines(d); n > mostFunctionLines {
		broken = append(broken, r.at(d.Pos(), "%s has %d lines; at most %d: it does more than one thing", d.Name.Name, n, mostFunctionLines))
	}
	if n := d.Type.Params.NumFields(); n > mostParameters {
		broken = append(broken, r.at(d.Pos(), "%s has %d parameters; at most %d: some of them belong together in a struct", d.Name.Name, n, mostParameters))
	}
	return broken
}

// proportions holds what most functions look like, tests aside.
func proportions(r *tree) (broken []string) {
	lengths := r.lengths()
	if n := tenths(lengths, 5); n > halfOfFunctionLines {
		broken = append(broken, fmt.Sprintf("of %d functions half must have at most %d lines, and have up to %d", len(lengths), halfOfFunctionLines, n))
	}
	if n := tenths(lengths, 9); n > nineInTenLines {
		broken = append(broken, fmt.Sprintf("of %d functions nine in ten must have at most %d lines, and have up to %d", len(lengths), nineInTenLines, n))
	}
	return broken
}

// lengths are the lines of all functions, tests aside, the shortest first.
func (r *tree) lengths() (all []int) {
	for _, p := range r.packages {
		for _, f := range p.sources() {
			for _, d := range f.functions() {
				all = append(all, r.lines(d))
			}
		}
	}
	slices.Sort(all)
	return all
}

// tenths is the length up to which so many tenths of the functions go.
func tenths(lengths []int, n int) int {
	if len(lengths) == 0 {
		return 0
	}
	return lengths[(len(lengths)*n-1)/10]
}

// functions are those declared in a file.
func (f *file) functions() (all []*ast.FuncDecl) {
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
			all = append(all, d)
		}
	}
	return all
}

// lines is the length of a function's body.
func (r *tree) lines(d *ast.FuncDecl) int {
	return max(r.fset.Position(d.Body.End()).Line-r.fset.Position(d.Body.Pos()).Line-1, 1)
}
