package repotest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// module is the import path of the repository's root.
const module = "github.com/meridian-mesh/meridian/"

// tree is a repository: its text files by path, and its Go packages sorted by folder.
type tree struct {
	texts    map[string]string
	fset     *token.FileSet
	packages []*pkg
}

// pkg is a folder with Go files, test files included.
type pkg struct {
	dir   string
	files []*file
}

// file is one Go file.
type file struct {
	path string
	test bool
	*ast.File
}

// sources are the files that are not tests.
func (p *pkg) sources() []*file {
	return slices.DeleteFunc(slices.Clone(p.files), func(f *file) bool { return f.test })
}

// load reads a repository. What is fetched or built is not part of it, nor are nested modules.
func load(t *testing.T, root fs.FS) *tree {
	t.Helper()
	r := &tree{texts: map[string]string{}, fset: token.NewFileSet()}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipped(root, name) {
				return fs.SkipDir
			}
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err == nil && utf8.Valid(text) {
			r.texts[name] = string(text)
			err = r.parse(name, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func skipped(root fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil || dir == "bin" || strings.HasPrefix(path.Base(dir), ".") && dir != ".ci"
}

// parse adds a Go file to its package. The go command does not look into testdata, and nor does this.
func (r *tree) parse(name, text string) error {
	if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
		return nil
	}
	syntax, err := parser.ParseFile(r.fset, name, text, parser.ParseComments)
	if err != nil {
		return err
	}
	p := r.pkg(path.Dir(name))
	p.files = append(p.files, &file{path: name, test: strings.HasSuffix(name, "_test.go"), File: syntax})
	return nil
}

// pkg is the package in a folder, new where there was none.
func (r *tree) pkg(dir string) *pkg {
	i, found := slices.BinarySearchFunc(r.packages, dir, func(p *pkg, dir string) int { return strings.Compare(p.dir, dir) })
	if !found {
		r.packages = slices.Insert(r.packages, i, &pkg{dir: dir})
	}
	return r.packages[i]
}

// at says what is wrong at a place.
func (r *tree) at(p token.Pos, format string, args ...any) string {
	position := r.fset.Position(p)
	return fmt.Sprintf("%s:%d: %s", position.Filename, position.Line, fmt.Sprintf(format, args...))
}
