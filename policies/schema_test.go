package policies

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"

	"github.com/meridian-mesh/meridian/geo"
)

// enums are the allowed values of string types.
var enums = map[reflect.Type][]any{
	reflect.TypeFor[Protocol]():        {ProtocolOpenAI, ProtocolHTTP, ProtocolGRPC, ProtocolTCP},
	reflect.TypeFor[PoolSourceKind]():  {FromService, FromServiceImport, FromInferencePool},
	reflect.TypeFor[CapacitySource]():  {CapacityStatic, CapacityVLLM},
	reflect.TypeFor[HealthCheckType](): {HealthHTTP, HealthGRPC, HealthTCP},
	reflect.TypeFor[UnknownLocation](): {UnknownRefuse, UnknownPin, UnknownIgnore},
	reflect.TypeFor[Role]():            {RoleGateway, RoleSidecar},
	reflect.TypeFor[LocationKind]():    {LocationNone, LocationGeoIP, LocationGeoService},
}

// specs are the kinds with the type of their spec.
var specs = []struct {
	kind Kind
	spec any
}{
	{KindRegion, RegionSpec{}}, {KindCluster, ClusterSpec{}}, {KindService, ServiceSpec{}},
	{KindResidency, ResidencySpec{}}, {KindTraffic, TrafficSpec{}}, {KindGateway, GatewaySpec{}},
}

// generateSchema makes the schema from the types and their comments.
func generateSchema(t *testing.T) []byte {
	t.Helper()
	r := &jsonschema.Reflector{Anonymous: true, Mapper: mapType, Namer: nameType}
	if err := r.AddGoComments("github.com/meridian-mesh/meridian/policies", "./"); err != nil {
		t.Fatal(err)
	}
	r.CommentMap = renamed(r.CommentMap)
	root := documentSchema()
	for _, k := range specs {
		for name, definition := range r.Reflect(k.spec).Definitions {
			root.Definitions[name] = definition
		}
		root.AllOf = append(root.AllOf, specSchema(k.kind, reflect.TypeOf(k.spec).Name()))
	}
	root.Definitions["Metadata"] = r.Reflect(Metadata[string]{}).Definitions["Metadata"]
	cloud, _ := root.Definitions["RegionSpec"].Properties.Get("cloud")
	for _, key := range cloudKeys() {
		cloud.Enum = append(cloud.Enum, key)
	}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// documentSchema is what all kinds have in common.
func documentSchema() *jsonschema.Schema {
	kind := &jsonschema.Schema{Type: "string", Description: "The kind of the object, which decides what its spec says."}
	for _, k := range kinds {
		kind.Enum = append(kind.Enum, k)
	}
	properties := jsonschema.NewProperties()
	properties.Set("apiVersion", &jsonschema.Schema{Const: APIVersion, Description: "The version of the kinds."})
	properties.Set("kind", kind)
	properties.Set("metadata", &jsonschema.Schema{Ref: "#/$defs/Metadata"})
	properties.Set("spec", &jsonschema.Schema{Type: "object"})
	return &jsonschema.Schema{
		Version: "https://json-schema.org/draft/2020-12/schema", Title: "Meridian policy document",
		Type: "object", Properties: properties, Required: []string{"apiVersion", "kind", "metadata"},
		AdditionalProperties: jsonschema.FalseSchema, Definitions: jsonschema.Definitions{},
	}
}

// specSchema says what the spec of a kind is. Only a Traffic may be without: its defaults are a policy.
func specSchema(kind Kind, spec string) *jsonschema.Schema {
	isKind, hasSpec := jsonschema.NewProperties(), jsonschema.NewProperties()
	isKind.Set("kind", &jsonschema.Schema{Const: kind})
	hasSpec.Set("spec", &jsonschema.Schema{Ref: "#/$defs/" + spec})
	then := &jsonschema.Schema{Properties: hasSpec}
	if kind != KindTraffic {
		then.Required = []string{"spec"}
	}
	return &jsonschema.Schema{If: &jsonschema.Schema{Properties: isKind}, Then: then}
}

func mapType(t reflect.Type) *jsonschema.Schema {
	if values, ok := enums[t]; ok {
		return &jsonschema.Schema{Type: "string", Enum: values}
	}
	switch t.String() {
	case "geo.Country":
		return countrySchema()
	case "policies.Duration":
		return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	case "netip.Addr":
		return &jsonschema.Schema{Type: "string", AnyOf: []*jsonschema.Schema{{Format: "ipv4"}, {Format: "ipv6"}}}
	case "uint16":
		return &jsonschema.Schema{Type: "integer", Minimum: "1", Maximum: "65535"}
	}
	return nil
}

func countrySchema() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, c := range geo.Countries().Countries() {
		s.Enum = append(s.Enum, c)
	}
	return s
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
