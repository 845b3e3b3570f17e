package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// documents are what users read, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(text)
		}
	}
	return texts
}

// Every command and flag that the documents name is there.
func TestDocumentsNameCommandsThatExist(t *testing.T) {
	count := 0
	for path, text := range documents(t) {
		for line := range strings.Lines(text) {
			command, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "meridian ")
			if !ok {
				continue
			}
			count++
			checkCommand(t, path, strings.Fields(command))
		}
	}
	if count < 10 {
		t.Errorf("only %d commands found", count)
	}
}

func checkCommand(t *testing.T, path string, words []string) {
	t.Helper()
	c, rest, err := newRoot().Find(words)
	if err != nil || !c.HasParent() {
		t.Errorf("%s names `meridian %s`, which does not exist", path, strings.Join(words, " "))
		return
	}
	for _, w := range rest {
		if name, ok := strings.CutPrefix(strings.Trim(w, "[]()"), "--"); ok && c.Flags().Lookup(name) == nil {
			t.Errorf("%s: `meridian %s` has no flag --%s", path, c.Name(), name)
		}
	}
}

// link is a link to another file of the repository.
var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

// Every link between the documents leads to a file.
func TestDocumentsLinkToFilesThatExist(t *testing.T) {
	for path, text := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			}
		}
	}
}

// session is a fence that shows a command and what it printed.
var session = regexp.MustCompile("(?ms)^```console\n\\$ meridian ([^\n]+)\n(.*?)^```")

// What the documents say that a command prints is what it prints.
func TestDocumentsShowWhatCommandsPrint(t *testing.T) {
	texts := documents(t)
	t.Chdir("../..")
	count := 0
	for path, text := range texts {
		for _, m := range session.FindAllStringSubmatch(text, -1) {
			count++
			var out strings.Builder
			run(t.Context(), strings.Fields(m[1]), &out, &out)
			if diff := cmp.Diff(m[2], out.String()); diff != "" {
				t.Errorf("%s: meridian %s (-shown +printed):\n%s", path, m[1], diff)
			}
		}
	}
	if count == 0 {
		t.Error("no document shows a command with its output")
	}
}

// policyBlock is a fence with whole policy documents.
var policyBlock = regexp.MustCompile("(?ms)^```yaml\n(apiVersion: .*?)^```")

// What the tutorial lets the reader write is valid, alone, and so is all of it together.
func TestTutorialPoliciesAreValid(t *testing.T) {
	text, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := policyBlock.FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Fatal("the tutorial has no policies")
	}
	dir := t.TempDir()
	for i, b := range blocks {
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))+".yaml"), []byte(b[1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if code := run(t.Context(), []string{"validate", dir}, &out, &out); code != 0 {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}

// The policy that the README shows is one that the examples hold, so that its explanation is of the same.
func TestReadmePolicyIsInTheExamples(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../policies/examples/eu-pinned.yaml")
	if err != nil {
		t.Fatal(err)
	}
	blocks := policyBlock.FindAllStringSubmatch(string(readme), -1)
	if len(blocks) != 1 || !strings.Contains(string(example), blocks[0][1]) {
		t.Errorf("policies/examples/eu-pinned.yaml does not hold the README's policy: %q", blocks)
	}
}

// Every command says what it is for and shows how it is called.
func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	for _, c := range newRoot().Commands() {
		if c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		if c.Short == "" || c.Example == "" {
			t.Errorf("meridian %s has no description or no example", c.Name())
		}
	}
}
