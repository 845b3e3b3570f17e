package policies

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/geo"
)

var update = flag.Bool("update", false, "rewrite the files that say which diagnostics are expected")

func read(t testing.TB, paths ...string) []File {
	t.Helper()
	var files []File
	for _, path := range paths {
		bytes, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, File{filepath.Base(path), bytes})
	}
	return files
}

func glob(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no file matches %s (%v)", pattern, err)
	}
	return paths
}

func TestGoodFilesGiveASet(t *testing.T) {
	for _, path := range glob(t, "testdata/good/*.yaml") {
		if _, diagnostics := Parse(read(t, path)); len(diagnostics) > 0 {
			t.Errorf("%s:\n%s", path, diagnostics)
		}
	}
}

func TestEachExampleGivesASet(t *testing.T) {
	for _, path := range glob(t, "examples/*.yaml") {
		if _, diagnostics := Parse(read(t, path)); len(diagnostics) > 0 {
			t.Errorf("%s:\n%s", path, diagnostics)
		}
	}
}

// The examples' comments promise these boundaries.
func TestExamplesPinWhatTheySay(t *testing.T) {
	for _, c := range []struct {
		example string
		rule    ResidencyName
		want    []RegionName
	}{
		{"examples/eu-pinned.yaml", "eu-people", []RegionName{"dublin", "frankfurt"}},
		{"examples/eu-pinned.yaml", "health-data", []RegionName{"dublin", "frankfurt"}},
		{"examples/eu-pinned.yaml", "acme", []RegionName{"frankfurt"}},
		{"examples/data-services.yaml", "patients", []RegionName{"frankfurt", "own-dc"}},
	} {
		set, diagnostics := Parse(read(t, c.example))
		if len(diagnostics) > 0 {
			t.Fatal(diagnostics)
		}
		rule, ok := set.Residency(c.rule)
		if !ok {
			t.Fatalf("%s has no rule %s", c.example, c.rule)
		}
		if diff := cmp.Diff(c.want, set.Boundary(rule)); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", c.example, c.rule, diff)
		}
	}
}

// Each bad file stands beside a file with the diagnostics that it must give, all of them, in order.
func TestBadFilesGiveTheirDiagnostics(t *testing.T) {
	for _, path := range glob(t, "testdata/bad/*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			set, diagnostics := Parse(read(t, path))
			if len(diagnostics) == 0 || set != nil {
				t.Fatal("accepted")
			}
			got := diagnostics.Error() + "\n"
			want := strings.TrimSuffix(path, ".yaml") + ".want"
			if *update {
				if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			bytes, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(bytes), got); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	set, diagnostics := Parse(read(t, "examples/minimal.yaml"))
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	llama, _ := set.Service("llama")
	if s := llama.Spec; s.Protocol != ProtocolOpenAI || s.Capacity.Source != CapacityVLLM || s.Capacity.SlotsPerEndpoint != 256 ||
		s.Health.Path != "/health" || s.Health.Interval.String() != "500ms" || s.Health.UnhealthyThreshold != 2 {
		t.Errorf("service defaults: %+v", s)
	}
	fra, _ := set.Region("frankfurt")
	if fra.Spec.Place.Country != "DE" || !fra.Spec.Place.Point.Valid() {
		t.Errorf("region place: %+v", fra.Spec.Place)
	}
	cluster, _ := set.Cluster("fra-1")
	if cluster.Spec.TrustDomain != "fra-1.meridian" {
		t.Errorf("trust domain %q", cluster.Spec.TrustDomain)
	}
	if traffic := set.TrafficFor("llama"); traffic.Spill.TargetUtilization != 80 || *traffic.Retries.Attempts != 3 {
		t.Errorf("traffic defaults: %+v", traffic)
	}
	gateway, ok := set.GatewayFor(RoleGateway, "frankfurt", "fra-1")
	if !ok || gateway.Spec.MaxBodyBytes != 16<<20 || !*gateway.Spec.ResponseHeaders || gateway.Spec.DataLabelHeader != "x-data-label" {
		t.Errorf("gateway defaults: %+v", gateway)
	}
	if _, ok := set.GatewayFor(RoleSidecar, "frankfurt", "fra-1"); ok {
		t.Error("the gateway selects sidecars by default")
	}
}

func TestHashIsOfContentAndNotOfFiles(t *testing.T) {
	whole := read(t, "examples/minimal.yaml")
	a, _ := Parse(whole)
	var split []File
	for i, doc := range strings.Split(string(whole[0].Bytes), "\n---\n") {
		split = append([]File{{Name: string(rune('a' + i)), Bytes: []byte(doc)}}, split...)
	}
	b, diagnostics := Parse(split)
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	if a.Hash == "" || a.Hash != b.Hash {
		t.Errorf("hashes differ: %q and %q", a.Hash, b.Hash)
	}
	whole[0].Bytes = []byte(strings.Replace(string(whole[0].Bytes), "port: 8080", "port: 8081", 1))
	if c, _ := Parse(whole); c.Hash == a.Hash {
		t.Error("another port has the same hash")
	}
}

func TestBoundaryIsTheRegionsInside(t *testing.T) {
	set, diagnostics := Parse(read(t, "testdata/good/everything.yaml"))
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	for within, want := range map[string][]RegionName{
		"EU": {"frankfurt"}, "CH": {"zurich"}, "dach": {"frankfurt", "zurich"}, "gaia-x": {"frankfurt"}, "region/zurich": {"zurich"}, "FR": nil,
	} {
		got := set.Boundary(&Residency{Spec: ResidencySpec{Within: []string{within}}})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("within %s (-want +got):\n%s", within, diff)
		}
	}
}

// Files with different faults are all reported, in order, also behind one that is no YAML.
func TestAllErrorsOfARunComeTogether(t *testing.T) {
	region := "apiVersion: meridian.dev/v1alpha1\nkind: Region\nmetadata: {name: fra}\nspec: {cloud: aws/eu-central-1}\n"
	_, diagnostics := Parse([]File{
		{"d.yaml", []byte("apiVersion: meridian.dev/v1alpha1\nkind: Cluster\nmetadata: {name: c}\nspec: {region: fraa}\n")},
		{"a.yaml", []byte(region + "---\nkind: [\n")},
		{"c.yaml", []byte(region)},
		{"b.yaml", []byte("kind: \x00")},
	})
	want := `a.yaml:7:1: not valid YAML: while parsing a flow node: did not find expected node content
b.yaml: the file contains a NUL byte
c.yaml:3:12: Region/fra: metadata.name: Region/fra is already defined at a.yaml:1:1: rename or remove one
d.yaml:4:8: Cluster/c: spec.region: there is no Region "fraa" in the files that could be read; did you mean "fra"?`
	if diff := cmp.Diff(want, diagnostics.Error()); diff != "" {
		t.Errorf("diagnostics (-want +got):\n%s", diff)
	}
}

// However objects are spread over files, and in whatever order, they are the same set.
func TestLayoutDoesNotMatter(t *testing.T) {
	whole := read(t, "testdata/good/everything.yaml")
	want, diagnostics := Parse(whole)
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	rapid.Check(t, func(t *rapid.T) {
		var files []File
		for i, document := range rapid.Permutation(documentsOf(whole[0])).Draw(t, "documents") {
			if i == 0 || rapid.Bool().Draw(t, "new file") {
				files = append(files, File{Name: fmt.Sprintf("%d.yaml", i)})
			}
			last := &files[len(files)-1]
			last.Bytes = append(last.Bytes, "\n---\n"+string(document)...)
		}
		got, diagnostics := Parse(files)
		if len(diagnostics) > 0 {
			t.Fatal(diagnostics)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(Origin{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
			cmp.Comparer(func(a, b geo.CountrySet) bool { return slices.Equal(a.Countries(), b.Countries()) }), cmp.Comparer(func(a, b geo.Place) bool { return a == b })); diff != "" {
			t.Errorf("sets (-want +got):\n%s", diff)
		}
	})
}
