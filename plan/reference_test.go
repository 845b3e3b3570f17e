package plan_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The reference of reasons is the list of codes with what their comments say.
func TestReferenceListsEveryReason(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Reasons\n\nWhy a cluster was chosen, ordered or refused, and why a request was: the codes in `x-meridian-reason`, `explain` and `simulate`.\n\n| code | meaning |\n|---|---|\n")
	rows := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || spec.Doc == nil {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		code, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		_, meaning, _ := strings.Cut(strings.Join(strings.Fields(spec.Doc.Text()), " "), ": ")
		fmt.Fprintf(&b, "| `%s` | %s |\n", code, meaning)
		rows++
		return true
	})
	if rows < 10 {
		t.Fatalf("only %d codes found", rows)
	}
	const path = "../docs/reference/reasons.md"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("docs/reference/reasons.md is stale, run `make generate` (-want +got):\n%s", diff)
	}
}
