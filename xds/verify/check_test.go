package verify

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/build"
)

// load builds the snapshots of a policy file, for the proxies of every role at every cluster, sorted by viewpoint.
func load(t testing.TB, path string) (*world.World, []*xds.Snapshot) {
	t.Helper()
	bytes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set, diagnostics := policies.Parse([]policies.File{{Name: path, Bytes: bytes}})
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	w := worldOf(set)
	snapshots, err := build.Build(w, plan.Compute(w, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	return w, snapshots
}

// snapshotOf finds a viewpoint's.
func snapshotOf(t testing.TB, snapshots []*xds.Snapshot, v world.ViewpointID) *xds.Snapshot {
	t.Helper()
	i := slices.IndexFunc(snapshots, func(s *xds.Snapshot) bool { return s.Viewpoint == v })
	if i < 0 {
		t.Fatalf("no snapshot of %s", v)
	}
	return snapshots[i]
}

func worldOf(set *policies.Set) *world.World {
	facts := []world.Fact{world.PoliciesLoaded{Set: set}}
	for _, c := range set.Clusters {
		for _, role := range []policies.Role{policies.RoleGateway, policies.RoleSidecar} {
			facts = append(facts, world.ViewpointSeen{Viewpoint: world.Viewpoint{Role: role, Region: c.Spec.Region, Cluster: c.Metadata.Name}})
		}
		acme := world.Viewpoint{Role: policies.RoleGateway, Region: c.Spec.Region, Cluster: c.Metadata.Name, Tenants: "acme+other"}
		facts = append(facts, world.ViewpointSeen{Viewpoint: acme})
		acme.Dialect = world.DialectGRPC
		facts = append(facts, world.ViewpointSeen{Viewpoint: acme})
		for _, dialect := range []world.Dialect{world.DialectEnvoy136, world.DialectGRPC} {
			v := world.Viewpoint{Role: policies.RoleGateway, Region: c.Spec.Region, Cluster: c.Metadata.Name, Dialect: dialect}
			facts = append(facts, world.ViewpointSeen{Viewpoint: v})
		}
	}
	var writer world.Writer
	w, _ := writer.Commit(facts)
	return w
}

func TestWhatIsBuiltRightHasNoViolation(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("too little to read: %v (%v)", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			w, snapshots := load(t, file)
			var c Checker
			for range 2 { // the second time from memory
				for _, s := range snapshots {
					for _, v := range c.Check(w, s) {
						t.Error(v)
					}
				}
			}
		})
	}
}

// Proxies that may serve some tenants must not be given what serves everybody.
func TestForeignTenantsReachNothing(t *testing.T) {
	w, snapshots := load(t, "testdata/mesh.yaml")
	all := snapshotOf(t, snapshots, "gateway/frankfurt/fra-1")
	if codes := codesOf(Check(w, all.For("gateway/frankfurt/fra-1@acme"))); !slices.Contains(codes, ForeignTenant) {
		t.Errorf("found %v", codes)
	}
	some := snapshotOf(t, snapshots, "gateway/frankfurt/fra-1@acme+other")
	if codes := codesOf(Check(w, some.For("gateway/frankfurt/fra-1@acme"))); !slices.Contains(codes, ForeignTenant) {
		t.Errorf("one tenant more: found %v", codes)
	}
}

// change gives a snapshot in which one resource has been changed.
func change[M message](t testing.TB, s *xds.Snapshot, typ xds.Type, name string, fault func(M)) *xds.Snapshot {
	t.Helper()
	r := s.Resource(typ, name)
	if r == nil {
		t.Fatalf("no %s %q", typ.Short(), name)
	}
	m, err := decode(r)
	if err != nil {
		t.Fatal(err)
	}
	before := proto.Clone(m)
	fault(m.(M))
	if proto.Equal(before, m) {
		t.Fatalf("the fault changes nothing in %s %q", typ.Short(), name)
	}
	changed, err := xds.NewResource(typ, name, m)
	if err != nil {
		t.Fatal(err)
	}
	return with(s, changed)
}

// with gives a snapshot in which a resource has been added or replaced.
func with(s *xds.Snapshot, r *xds.Resource) *xds.Snapshot {
	return xds.NewSnapshot(s.Viewpoint, append(slices.Collect(without(s, r.Type, r.Name).All()), r))
}

// without gives a snapshot from which a resource has been removed.
func without(s *xds.Snapshot, typ xds.Type, name string) *xds.Snapshot {
	return xds.NewSnapshot(s.Viewpoint, slices.DeleteFunc(slices.Collect(s.All()), func(r *xds.Resource) bool { return r.Type == typ && r.Name == name }))
}
