package policies

import (
	"slices"
	"strings"
	"testing"
)

func TestHostileFilesAreRefused(t *testing.T) {
	for name, bytes := range map[string]string{
		"too large":     strings.Repeat("# filler\n", MaxFileBytes/9+1),
		"not UTF-8":     "kind: \xff",
		"NUL":           "kind: \x00",
		"deep brackets": strings.Repeat("[", 200_000),
		"deep mapping":  deepMapping(2000),
		"deep list":     strings.Repeat("- ", 200_000),
		"deep keys":     strings.Repeat("? ", 200_000),
		"many keys":     "{" + strings.Repeat("a: b, ", 100_000) + "}",
		"many objects":  strings.Repeat("---\nkind: Region\n", 50_000),
		"many anchors":  strings.Repeat("- &a x\n", 100_000),
		"long name":     "apiVersion: meridian.dev/v1alpha1\nkind: " + strings.Repeat("Region", 100_000),
		"long field":    "apiVersion: meridian.dev/v1alpha1\nkind: Region\nmetadata: {name: a}\nspec: {? \"" + strings.Repeat("x", 200_000) + "\" : 1}",
		"aliases":       "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]",
		"alias in spec": "apiVersion: meridian.dev/v1alpha1\nkind: Region\nmetadata: &m {name: a}\nspec: *m",
		"empty":         "",
		"only comments": "# nothing\n---\n# here\n",
		"scalar":        "hello",
	} {
		set, diagnostics := Parse([]File{{name, []byte(bytes)}})
		if set != nil || len(diagnostics) == 0 || len(diagnostics) > maxDiagnostics+1 {
			t.Errorf("%s: set %v with %d diagnostics", name, set, len(diagnostics))
		}
		for _, d := range diagnostics {
			if len(d.String()) > 1000 {
				t.Errorf("%s: a diagnostic of %d bytes", name, len(d.String()))
			}
		}
	}
}

func deepMapping(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml", "examples/*.yaml"} {
		for _, file := range read(f, glob(f, pattern)...) {
			f.Add(file.Bytes)
		}
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		set, diagnostics := Parse([]File{{"fuzz.yaml", bytes}})
		if (set == nil) == (len(diagnostics) == 0) {
			t.Errorf("set %v with diagnostics %v: want exactly one of them", set, diagnostics)
		}
		if !slices.IsSortedFunc(diagnostics, compareDiagnostics) {
			t.Errorf("diagnostics are not sorted:\n%s", diagnostics)
		}
		lines := strings.Count(string(bytes), "\n") + 2
		for _, d := range diagnostics {
			if d.Message == "" || d.File == "" || d.Line > lines {
				t.Errorf("diagnostic says nothing, or of no place: %+v", d)
			}
		}
	})
}
