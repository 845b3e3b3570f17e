package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/xds"
)

// checkReference holds a generated document to what it is generated from.
func checkReference(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is stale, run `go test ./cmd/meridian -update` (-want +got):\n%s", path, diff)
	}
}

// The reference of the command line is what the commands say of themselves.
func TestCommandReferenceIsUpToDate(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The command line\n\n" + newRoot().Long + "\n\n`meridian completion SHELL` prints completions for your shell.\n")
	for _, c := range newRoot().Commands() {
		if c.Name() != "help" && c.Name() != "completion" {
			describeCommand(&b, c)
		}
	}
	checkReference(t, "../../docs/reference/cli.md", b.String())
}

func describeCommand(b *strings.Builder, c *cobra.Command) {
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(b, "\n## meridian %s\n\n%s\n\n```sh\n", c.Name(), about)
	for line := range strings.Lines(c.Example) {
		b.WriteString(strings.TrimPrefix(line, "  "))
	}
	b.WriteString("\n```\n")
	if c.LocalFlags().HasFlags() {
		b.WriteString("\n| flag | default | meaning |\n|---|---|---|\n")
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { describeFlag(b, f) })
}

func describeFlag(b *strings.Builder, f *pflag.Flag) {
	name, value := "--"+f.Name, ""
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if f.DefValue != "" && f.DefValue != "[]" {
		value = "`" + strings.Trim(f.DefValue, "[]") + "`"
	}
	fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, value, f.Usage)
}

// The reference of policy files is the JSON Schema for people.
func TestPolicyReferenceIsUpToDate(t *testing.T) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(policies.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	r := &policyReference{definitions: schema.Definitions, told: map[string]bool{}}
	r.WriteString("# Policy files\n\nEvery document has `apiVersion: " + policies.APIVersion + "`, a `kind`, `metadata.name` and a `spec`. A file holds one or many.\n" +
		"`meridian schema` prints this as a JSON Schema for editors.\n")
	r.describe("metadata", "Metadata")
	for _, kind := range schema.AllOf {
		name, _ := kind.If.Properties.Get("kind")
		spec, _ := kind.Then.Properties.Get("spec")
		r.describe(fmt.Sprint(name.Const), definitionOf(spec))
	}
	checkReference(t, "../../docs/reference/policies.md", r.String())
}

// policyReference writes a section for each definition, once, the first time that it is met.
type policyReference struct {
	strings.Builder
	definitions jsonschema.Definitions
	told        map[string]bool
}

func definitionOf(s *jsonschema.Schema) string { return strings.TrimPrefix(s.Ref, "#/$defs/") }

func (r *policyReference) describe(title, name string) {
	if r.told[name] {
		return
	}
	r.told[name] = true
	definition := r.definitions[name]
	required := map[string]bool{}
	for _, field := range definition.Required {
		required[field] = true
	}
	fmt.Fprintf(r, "\n## %s\n\n%s\n\n| field | type | meaning |\n|---|---|---|\n", title, definition.Description)
	var below []string
	for p := definition.Properties.Oldest(); p != nil; p = p.Next() {
		about := p.Value.Description
		if required[p.Key] {
			about = "**Required.** " + about
		}
		fmt.Fprintf(r, "| `%s` | %s | %s |\n", p.Key, typeOf(p.Value), about)
		below = append(below, nested(p.Value))
	}
	for _, name := range below {
		if name != "" {
			r.describe(name, name)
		}
	}
}

// nested is the definition that a field's value or its elements have.
func nested(s *jsonschema.Schema) string {
	if s.Items != nil {
		return definitionOf(s.Items)
	}
	return definitionOf(s)
}

// mostValues is how many values of an enumeration are worth a table's cell.
const mostValues = 8

// typeOf says what a field takes.
func typeOf(s *jsonschema.Schema) string {
	switch {
	case s.Ref != "":
		return "[" + definitionOf(s) + "](#" + strings.ToLower(definitionOf(s)) + ")"
	case s.Items != nil:
		return "list of " + typeOf(s.Items)
	case len(s.Enum) > mostValues:
		return fmt.Sprintf("one of %d names, such as `%v`", len(s.Enum), s.Enum[0])
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(values, ", ")
	case strings.Contains(s.Pattern, "ms|s|m|h"):
		return "duration, such as `1s`"
	case len(s.AnyOf) > 0:
		return "IP address"
	case s.Minimum != "" && s.Maximum != "":
		return fmt.Sprintf("%s, %s to %s", s.Type, s.Minimum, s.Maximum)
	}
	return s.Type
}

// The reference of headers has every header that clients get.
func TestHeaderReferenceIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/headers.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range []string{xds.HeaderCluster, xds.HeaderRegion, xds.HeaderReason} {
		if !strings.Contains(string(text), "| `"+header+"` | ") {
			t.Errorf("docs/reference/headers.md has no row for %s", header)
		}
	}
}
