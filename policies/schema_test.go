package policies

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

// enums are the allowed values of string types.
var enums = map[reflect.Type][]any{
	reflect.TypeFor[Protocol]():        {ProtocolOpenAI, ProtocolHTTP, ProtocolGRPC, ProtocolTCP},
	reflect.TypeFor[CapacitySource]():  {CapacityStatic, CapacityVLLM},
	reflect.TypeFor[HealthCheckType](): {HealthHTTP, HealthGRPC, HealthTCP},
	reflect.TypeFor[UnknownLocation](): {UnknownRefuse, UnknownPin, UnknownIgnore},
	reflect.TypeFor[Role]():            {RoleGateway, RoleSidecar},
	reflect.TypeFor[LocationKind]():    {LocationNone, LocationGeoIP, LocationGeoService},
}

// generateSchema makes the schema from the types and their comments.
func generateSchema(t *testing.T) []byte {
	t.Helper()
	r := &jsonschema.Reflector{ExpandedStruct: false, Anonymous: true, Mapper: mapType, Namer: nameType}
	if err := r.AddGoComments("github.com/meridian-mesh/meridian/policies", "./"); err != nil {
		t.Fatal(err)
	}
	r.CommentMap = renamed(r.CommentMap)
	definitions := jsonschema.Definitions{}
	var documents []*jsonschema.Schema
	for _, k := range []struct {
		kind Kind
		spec any
	}{
		{KindRegion, RegionSpec{}}, {KindCluster, ClusterSpec{}}, {KindService, ServiceSpec{}},
		{KindResidency, ResidencySpec{}}, {KindTraffic, TrafficSpec{}}, {KindGateway, GatewaySpec{}},
	} {
		for name, definition := range r.Reflect(k.spec).Definitions {
			definitions[name] = definition
		}
		documents = append(documents, documentSchema(k.kind, reflect.TypeOf(k.spec).Name()))
	}
	definitions["Metadata"] = r.Reflect(Metadata[string]{}).Definitions["Metadata"]
	root := &jsonschema.Schema{
		Version: "https://json-schema.org/draft/2020-12/schema", Title: "Meridian policy document",
		OneOf: documents, Definitions: definitions,
	}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

func documentSchema(kind Kind, spec string) *jsonschema.Schema {
	properties := jsonschema.NewProperties()
	properties.Set("apiVersion", &jsonschema.Schema{Const: APIVersion})
	properties.Set("kind", &jsonschema.Schema{Const: kind})
	properties.Set("metadata", &jsonschema.Schema{Ref: "#/$defs/Metadata"})
	properties.Set("spec", &jsonschema.Schema{Ref: "#/$defs/" + spec})
	required := []string{"apiVersion", "kind", "metadata"}
	if kind != KindTraffic {
		required = append(required, "spec")
	}
	return &jsonschema.Schema{Type: "object", Properties: properties, Required: required, AdditionalProperties: jsonschema.FalseSchema}
}

func mapType(t reflect.Type) *jsonschema.Schema {
	if values, ok := enums[t]; ok {
		return &jsonschema.Schema{Type: "string", Enum: values}
	}
	switch t.String() {
	case "policies.Duration":
		return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	case "netip.Addr":
		return &jsonschema.Schema{Type: "string", AnyOf: []*jsonschema.Schema{{Format: "ipv4"}, {Format: "ipv6"}}}
	case "uint16":
		return &jsonschema.Schema{Type: "integer", Minimum: "1", Maximum: "65535"}
	}
	return nil
}

func nameType(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

// renamed gives the fields of the generic Metadata their comments under the name that reflection gives the type.
func renamed(comments map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range comments {
		out[k] = strings.ReplaceAll(v, "\n", " ")
		if rest, ok := strings.CutPrefix(k, "github.com/meridian-mesh/meridian/policies.Metadata"); ok {
			out["github.com/meridian-mesh/meridian/policies."+reflect.TypeFor[Metadata[string]]().Name()+rest] = out[k]
		}
	}
	return out
}

func TestSchemaIsUpToDate(t *testing.T) {
	want := generateSchema(t)
	if *update {
		if err := os.WriteFile("schema/meridian.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(Schema())); diff != "" {
		t.Errorf("schema/meridian.schema.json is stale; run `go test ./policies -update` (-want +got):\n%s", diff)
	}
}

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
			for i, document := range bytes.Split(file.Bytes, []byte("\n---\n")) {
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
