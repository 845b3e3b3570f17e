package repotest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// packageDocs wants one package comment in each package, in doc.go, that begins as godoc expects.
func packageDocs(r *tree) (broken []string) {
	for _, p := range r.packages {
		found := false
		for _, f := range p.files {
			switch {
			case f.Doc == nil:
			case path.Base(f.path) != "doc.go":
				broken = append(broken, r.at(f.Doc.Pos(), "a package comment belongs into doc.go, where readers look first"))
			case !strings.HasPrefix(f.Doc.Text(), opening(f.Name.Name)):
				broken = append(broken, r.at(f.Doc.Pos(), "the package comment must begin with %q", opening(f.Name.Name)))
			default:
				found = true
			}
		}
		if !found {
			broken = append(broken, fmt.Sprintf("%s/doc.go:1: a package comment is missing: its one job, who calls it, what it promises, what is safe concurrently", p.dir))
		}
	}
	return broken
}

// opening is how a package comment begins.
func opening(name string) string {
	if name == "main" {
		return "Command "
	}
	return "Package " + name + " "
}

// undocumentable are methods whose meaning their interface gives.
var undocumentable = []string{"Error", "Is", "Less", "Len", "Swap", "String", "Unwrap", "MarshalJSON", "MarshalText", "UnmarshalJSON", "UnmarshalText"}

// documented wants a comment on everything exported, methods of interfaces included. The fields of a struct are often
// said by their names and types; what isn't is for the reader of a change to ask.
func documented(r *tree) (broken []string) {
	for _, p := range r.packages {
		for _, f := range p.sources() {
			for _, d := range f.Decls {
				broken = append(broken, r.undocumented(d)...)
			}
		}
	}
	return broken
}

func (r *tree) undocumented(d ast.Decl) (broken []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || receiver(d).IsExported() && !slices.Contains(undocumentable, d.Name.Name)) {
			broken = append(broken, r.missing(d.Name))
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			broken = append(broken, r.undocumentedSpec(spec, d.Doc != nil && (d.Tok != token.TYPE || !d.Lparen.IsValid()))...)
		}
	}
	return broken
}

// undocumentedSpec looks at constants, variables and types; a comment on a group of values is for all of them.
func (r *tree) undocumentedSpec(spec ast.Spec, covered bool) (broken []string) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() && !covered && s.Doc == nil && s.Comment == nil {
				broken = append(broken, r.missing(name))
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return nil
		}
		if !covered && s.Doc == nil && s.Comment == nil {
			broken = append(broken, r.missing(s.Name))
		}
		if t, ok := s.Type.(*ast.InterfaceType); ok {
			broken = append(broken, r.undocumentedMethods(t)...)
		}
	}
	return broken
}

func (r *tree) undocumentedMethods(t *ast.InterfaceType) (broken []string) {
	for _, m := range t.Methods.List {
		for _, name := range m.Names {
			if name.IsExported() && m.Doc == nil && m.Comment == nil {
				broken = append(broken, r.missing(name))
			}
		}
	}
	return broken
}

func (r *tree) missing(name *ast.Ident) string {
	return r.at(name.Pos(), "%s is exported and has no comment: say what it means, its unit, its errors", name.Name)
}

// receiver is the name of a method's type.
func receiver(d *ast.FuncDecl) *ast.Ident {
	t := d.Recv.List[0].Type
	for {
		switch e := t.(type) {
		case *ast.StarExpr:
			t = e.X
		case *ast.IndexExpr:
			t = e.X
		case *ast.IndexListExpr:
			t = e.X
		case *ast.Ident:
			return e
		default:
			return ast.NewIdent("_")
		}
	}
}

// catchAlls are names that say nothing, so anything ends up behind them.
var catchAlls = []string{"base", "common", "core", "helper", "helpers", "manager", "misc", "shared", "util", "utils"}

// names refuses packages and files whose name says nothing.
func names(r *tree) (broken []string) {
	for _, p := range r.packages {
		if slices.Contains(catchAlls, path.Base(p.dir)) {
			broken = append(broken, fmt.Sprintf("%s:1: a package named %s has no one job: name it for what it does", p.files[0].path, path.Base(p.dir)))
		}
		for _, f := range p.files {
			name := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.path), ".go"), "_test")
			if slices.Contains(catchAlls, name) {
				broken = append(broken, fmt.Sprintf("%s:1: a file named %s has no one subject: name it for what it is about", f.path, name))
			}
		}
	}
	return broken
}
