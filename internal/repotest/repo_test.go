package repotest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// rule finds what breaks it: a line each, "path:line: what: why".
type rule func(*tree) []string

// rules are all the rules, by the names that the archives in testdata have.
var rules = map[string]rule{
	"imports":      imports,
	"alone":        alone,
	"pure":         pure,
	"packagedocs":  packageDocs,
	"names":        names,
	"documented":   documented,
	"sizes":        sizes,
	"proportions":  proportions,
	"unfinished":   unfinished,
	"wrapping":     wrapping,
	"sleeping":     sleeping,
	"leaks":        leaks,
	"machine":      machine,
	"gomod":        goMod,
	"architecture": architecture,
	"commands":     commands,
	"targets":      targets,
}

func TestRepository(t *testing.T) {
	repo := load(t, os.DirFS("../.."))
	if len(repo.packages) < 10 {
		t.Fatalf("found %d packages only: this does not look like the repository", len(repo.packages))
	}
	lengths := repo.lengths()
	t.Logf("%d packages, %d functions: half have at most %d lines, nine in ten at most %d", len(repo.packages), len(lengths), tenths(lengths, 5), tenths(lengths, 9))
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			for _, broken := range rule(repo) {
				t.Error(broken)
			}
		})
	}
}

// Every rule has an archive with a small repository that breaks it, and with what must be found there.
func TestRulesCatch(t *testing.T) {
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
			if i < 0 {
				t.Fatal("the archive does not say what must be found: add a file named want")
			}
			want := strings.Split(strings.TrimSpace(string(archive.Files[i].Data)), "\n")
			archive.Files = slices.Delete(archive.Files, i, i+1)
			broken, err := txtar.FS(archive)
			if err != nil {
				t.Fatal(err)
			}
			got := rule(load(t, broken))
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("found other than wanted (-want +got):\n%s", diff)
			}
		})
	}
}
