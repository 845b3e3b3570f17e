package verify

import (
	"os"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/build"
)

// mesh builds the snapshots of a mesh with three ways of being pinned, seen from every cluster.
func mesh(t testing.TB) (*world.World, []*xds.Snapshot) {
	t.Helper()
	bytes, err := os.ReadFile("testdata/mesh.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, diagnostics := policies.Parse([]policies.File{{Name: "mesh.yaml", Bytes: bytes}})
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

func worldOf(set *policies.Set) *world.World {
	facts := []world.Fact{world.PoliciesLoaded{Set: set}}
	for _, c := range set.Clusters {
		facts = append(facts, world.ViewpointSeen{Viewpoint: world.Viewpoint{Role: policies.RoleGateway, Region: c.Spec.Region, Cluster: c.Metadata.Name}})
	}
	var writer world.Writer
	w, _ := writer.Commit(facts)
	return w
}

func TestWhatIsBuiltRightHasNoViolation(t *testing.T) {
	w, snapshots := mesh(t)
	var c Checker
	for range 2 { // the second time from memory
		for _, s := range snapshots {
			for _, v := range c.Check(w, s) {
				t.Error(v)
			}
		}
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
	return xds.NewSnapshot(s.Viewpoint, append(slices.Clone(without(s, r.Type, r.Name).Resources), r))
}

// without gives a snapshot from which a resource has been removed.
func without(s *xds.Snapshot, typ xds.Type, name string) *xds.Snapshot {
	return xds.NewSnapshot(s.Viewpoint, slices.DeleteFunc(slices.Clone(s.Resources), func(r *xds.Resource) bool { return r.Type == typ && r.Name == name }))
}
