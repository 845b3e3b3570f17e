package policies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

func compileSchema(t *testing.T) *validator.Schema {
	t.Helper()
	document, err := validator.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := validator.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("meridian.schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("meridian.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func validates(t *testing.T, s *validator.Schema, document []byte) error {
	t.Helper()
	var content any
	if err := yaml.Load(document, &content); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	value, err := validator.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}

func TestSchemaAcceptsGoodDocuments(t *testing.T) {
	s := compileSchema(t)
	for _, pattern := range []string{"testdata/good/*.yaml", "examples/*.yaml"} {
		for _, file := range read(t, glob(t, pattern)...) {
			for i, document := range documentsOf(file) {
				if err := validates(t, s, document); err != nil {
					t.Errorf("%s, document %d: %v", file.Name, i, err)
				}
			}
		}
	}
}

func TestSchemaRefusesWhatADocumentAloneCanShow(t *testing.T) {
	s := compileSchema(t)
	for name, document := range map[string]string{
		"unknown field":   `{apiVersion: meridian.dev/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {region: x, regoin: y}}`,
		"wrong type":      `{apiVersion: meridian.dev/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {region: 5}}`,
		"wrong kind":      `{apiVersion: meridian.dev/v1alpha1, kind: Clutser, metadata: {name: a}, spec: {region: x}}`,
		"missing name":    `{apiVersion: meridian.dev/v1alpha1, kind: Cluster, metadata: {}, spec: {region: x}}`,
		"not an enum":     `{apiVersion: meridian.dev/v1alpha1, kind: Service, metadata: {name: a}, spec: {protocol: FTP, pools: []}}`,
		"port too large":  `{apiVersion: meridian.dev/v1alpha1, kind: Service, metadata: {name: a}, spec: {port: 70000, pools: []}}`,
		"bare number":     `{apiVersion: meridian.dev/v1alpha1, kind: Traffic, metadata: {name: a}, spec: {idleTimeout: "5"}}`,
		"not an address":  `{apiVersion: meridian.dev/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {region: x, gateways: [{address: host, port: 1}]}}`,
		"without version": `{kind: Cluster, metadata: {name: a}, spec: {region: x}}`,
	} {
		if err := validates(t, s, []byte(document)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func documentsOf(f File) [][]byte { return bytes.Split(f.Bytes, []byte("\n---\n")) }

// These files are bad in ways that a document alone can show, so that an editor can, too.
func TestSchemaRefusesStructurallyBadFiles(t *testing.T) {
	s := compileSchema(t)
	for _, name := range []string{"addresses", "clusters", "gateway", "names", "regions",
		"residency", "selectors", "services", "traffic", "unknown-fields", "version-and-kind", "wrong-types"} {
		file := read(t, "testdata/bad/"+name+".yaml")[0]
		good := true
		for _, document := range documentsOf(file) {
			good = validates(t, s, document) == nil && good
		}
		if good {
			t.Errorf("%s: every document is accepted", name)
		}
	}
}

// numberField is a field with bounds in the schema: where it is in a document of a kind.
type numberField struct {
	kind     Kind
	path     []any
	min, max int64
}

func (f numberField) String() string {
	var b strings.Builder
	for _, step := range f.path {
		if i, ok := step.(int); ok {
			fmt.Fprintf(&b, "[%d]", i)
			continue
		}
		b.WriteString("." + step.(string))
	}
	return b.String()[1:]
}

// numberFields finds all fields with bounds below a schema.
func numberFields(defs map[string]any, schema map[string]any, kind Kind, path []any) []numberField {
	if ref, ok := schema["$ref"].(string); ok {
		schema = defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	at := func(step any) []any { return append(append([]any{}, path...), step) }
	var fields []numberField
	if low, ok := schema["minimum"].(float64); ok {
		fields = append(fields, numberField{kind, path, int64(low), int64(schema["maximum"].(float64))})
	}
	if items, ok := schema["items"].(map[string]any); ok {
		fields = append(fields, numberFields(defs, items, kind, at(0))...)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		fields = append(fields, numberFields(defs, property.(map[string]any), kind, at(name))...)
	}
	return fields
}

// Parse and the schema have the same bounds: each bound of the schema is accepted by Parse, and one beyond is not.
func TestSchemaAndParseAgreeOnNumbers(t *testing.T) {
	var schema struct {
		Defs map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var fields []numberField
	for _, k := range specs {
		root := map[string]any{"$ref": fmt.Sprintf("#/$defs/%sSpec", k.kind)}
		fields = append(fields, numberFields(schema.Defs, root, k.kind, []any{"spec"})...)
	}
	if len(fields) < 15 {
		t.Fatalf("%d fields have bounds in the schema, want at least 15", len(fields))
	}
	for _, f := range fields {
		for value, good := range map[int64]bool{f.min - 1: false, f.min: true, f.max: true, f.max + 1: false} {
			if got := !complainsAbout(t, f, value); got != good {
				t.Errorf("%s %s = %d: accepted %v by Parse and %v by the schema", f.kind, f, value, got, good)
			}
		}
	}
}

// complainsAbout says whether Parse says something about a field when it has a value.
func complainsAbout(t *testing.T, f numberField, value int64) bool {
	t.Helper()
	document := map[string]any{"apiVersion": APIVersion, "kind": f.kind, "metadata": map[string]any{"name": "x"}}
	put(document, f.path, value)
	text, err := yaml.Dump(document)
	if err != nil {
		t.Fatal(err)
	}
	_, diagnostics := Parse([]File{{"x.yaml", text}})
	for _, d := range diagnostics {
		if strings.HasPrefix(f.String(), d.Field) && strings.Contains(d.Message, "outside") {
			return true
		}
	}
	return false
}

// put puts a value into nested maps and lists, which it makes.
func put(m map[string]any, path []any, value any) {
	for i, step := range path[:len(path)-1] {
		next := map[string]any{}
		if _, isIndex := path[i+1].(int); isIndex {
			m[step.(string)] = []any{next}
		} else if name, isName := step.(string); isName {
			m[name] = next
		} else {
			continue
		}
		m = next
	}
	m[path[len(path)-1].(string)] = value
}
