package build

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
	"sigs.k8s.io/yaml"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// load makes a world of a policy file, with a gateway proxy in every cluster.
func load(t testing.TB, path string) *world.World {
	t.Helper()
	bytes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set, diagnostics := policies.Parse([]policies.File{{Name: path, Bytes: bytes}})
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	return worldOf(set)
}

func worldOf(set *policies.Set) *world.World {
	facts := []world.Fact{world.PoliciesLoaded{Set: set}}
	for _, c := range set.Clusters {
		facts = append(facts, world.ViewpointSeen{Viewpoint: world.Viewpoint{Role: policies.RoleGateway, Region: c.Spec.Region, Cluster: c.Metadata.Name}})
	}
	var writer world.Writer
	w, _ := writer.Commit(facts)
	return w
}

// decode turns a finished resource back into its message.
func decode(t testing.TB, r *xds.Resource) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByURL(string(r.Type))
	if err != nil {
		t.Fatal(err)
	}
	m := kind.New().Interface()
	if err := proto.Unmarshal(r.Bytes, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Each policy file in testdata gives, for every viewpoint, one golden file a type: what proxies are sent.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no input (%v)", err)
	}
	for _, input := range inputs {
		w := load(t, input)
		snapshots, err := Build(w, plan.Compute(w, nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range snapshots {
			for _, typ := range s.Types() {
				name := strings.TrimSuffix(filepath.Base(input), ".yaml") + "/" + strings.ReplaceAll(string(s.Viewpoint), "/", "_") + "." + strings.ToLower(typ.Short()) + ".yaml"
				t.Run(name, func(t *testing.T) { golden(t, filepath.Join("testdata", name), slices.Collect(s.Of(typ).All())) })
			}
		}
	}
}

func golden(t *testing.T, path string, resources []*xds.Resource) {
	t.Helper()
	var b strings.Builder
	for _, r := range resources {
		asJSON, err := protojson.Marshal(decode(t, r))
		if err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.JSONToYAML(asJSON)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "---\n%s", asYAML)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

func TestEveryResourceIsValidByItsOwnRules(t *testing.T) {
	inputs, _ := filepath.Glob("testdata/*.yaml")
	for _, input := range inputs {
		w := load(t, input)
		snapshots, err := Build(w, plan.Compute(w, nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range snapshots {
			for r := range s.All() {
				v, ok := decode(t, r).(interface{ ValidateAll() error })
				if !ok {
					t.Fatalf("%s %s has no validation", r.Type.Short(), r.Name)
				}
				if err := v.ValidateAll(); err != nil {
					t.Errorf("%s %s: %v", r.Type.Short(), r.Name, err)
				}
			}
		}
	}
}

func TestUnchangedWorldGivesTheSamePointers(t *testing.T) {
	w := load(t, "testdata/mesh.yaml")
	var memo Memo
	var planned plan.Memo
	before, err := Build(w, plan.Compute(w, &planned), &memo)
	if err != nil {
		t.Fatal(err)
	}
	after, err := Build(w, plan.Compute(w, &planned), &memo)
	if err != nil {
		t.Fatal(err)
	}
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("%s was built again", before[i].Viewpoint)
		}
	}
}

func TestOneEndpointsHealthChangesOnlyItsOwnAssignments(t *testing.T) {
	w := load(t, "testdata/mesh.yaml")
	var writer world.Writer
	w, _ = writer.Commit([]world.Fact{world.PoliciesLoaded{Set: w.Policies()}, world.ViewpointSeen{Viewpoint: w.Viewpoints()[0]}, world.ViewpointSeen{Viewpoint: w.Viewpoints()[1]}})
	var memo Memo
	var planned plan.Memo
	before, err := Build(w, plan.Compute(w, &planned), &memo)
	if err != nil {
		t.Fatal(err)
	}
	pool := w.Pool(world.PoolKey{Service: "llama", Cluster: w.Viewpoints()[0].Cluster})
	w, _ = writer.Commit([]world.Fact{world.EndpointJudged{Endpoint: world.EndpointKey{Pool: pool.Key, Address: pool.Endpoints[0].Address}, Health: world.Health{Verdict: world.Unhealthy}}})
	after, err := Build(w, plan.Compute(w, &planned), &memo)
	if err != nil {
		t.Fatal(err)
	}
	for i := range after {
		for _, typ := range xds.Types() {
			if typ != xds.TypeEndpoint && before[i].Version(typ) != after[i].Version(typ) {
				t.Errorf("%s: %s changed", after[i].Viewpoint, typ.Short())
			}
		}
	}
	if before[0].Resource(xds.TypeEndpoint, xds.PoolCluster(pool.Key)) == after[0].Resource(xds.TypeEndpoint, xds.PoolCluster(pool.Key)) {
		t.Error("the pool's assignment did not change")
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, size := range []struct{ clusters, services int }{{10, 1000}, {100, 1000}} {
		b.Run(fmt.Sprintf("clusters=%d/services=%d", size.clusters, size.services), func(b *testing.B) {
			w := large(b, size.clusters, size.services)
			p := plan.Compute(w, nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Build(w, p, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// large makes a world seen from one viewpoint.
func large(t testing.TB, clusters, services int) *world.World {
	t.Helper()
	var doc strings.Builder
	doc.WriteString("apiVersion: meridian.dev/v1alpha1\nkind: Region\nmetadata: {name: fra}\nspec: {cloud: aws/eu-central-1}\n---\n")
	doc.WriteString("apiVersion: meridian.dev/v1alpha1\nkind: Gateway\nmetadata: {name: edge}\nspec: {listeners: [{name: http, port: 80}], eastWest: {port: 1, certificateFile: c, privateKeyFile: k, trustBundleDir: d}}\n")
	for c := range clusters {
		fmt.Fprintf(&doc, "---\napiVersion: meridian.dev/v1alpha1\nkind: Cluster\nmetadata: {name: c%d}\nspec: {region: fra, gateways: [{address: 127.200.0.%d, port: 1}]}\n", c, c+1)
	}
	for s := range services {
		fmt.Fprintf(&doc, "---\napiVersion: meridian.dev/v1alpha1\nkind: Service\nmetadata: {name: s%d}\nspec:\n  models: [m%d]\n  pools:\n", s, s)
		for c := range min(clusters, 10) {
			fmt.Fprintf(&doc, "  - {cluster: c%d, endpoints: [{address: 127.%d.%d.%d, port: 80}]}\n", c, c, s/250, s%250+1)
		}
	}
	set, diagnostics := policies.Parse([]policies.File{{Name: "large.yaml", Bytes: []byte(doc.String())}})
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics[:min(5, len(diagnostics))])
	}
	var writer world.Writer
	w, _ := writer.Commit([]world.Fact{world.PoliciesLoaded{Set: set}, world.ViewpointSeen{Viewpoint: world.Viewpoint{Role: policies.RoleGateway, Region: "fra", Cluster: "c0"}}})
	return w
}
