package xds

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// plain makes a resource without a message, where only names and versions count.
func plain(t Type, name, version string) *Resource {
	return Serialised(t, name, version, nil)
}

func TestSnapshotIsSortedByTypeThenName(t *testing.T) {
	s := NewSnapshot("gateway/r/c", []*Resource{
		plain(TypeRoute, "a", "1"), plain(TypeCluster, "b", "2"), plain(TypeSecret, "z", "3"), plain(TypeCluster, "a", "4"), plain(TypeListener, "l", "5"),
	})
	var got []string
	for r := range s.All() {
		got = append(got, r.Type.Short()+" "+r.Name)
	}
	want := []string{"Secret z", "Cluster a", "Cluster b", "Listener l", "RouteConfiguration a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestResourceIsFoundByTypeAndName(t *testing.T) {
	cluster, route := plain(TypeCluster, "a", "1"), plain(TypeRoute, "a", "2")
	s := NewSnapshot("gateway/r/c", []*Resource{route, cluster, plain(TypeCluster, "b", "3")})
	for name, c := range map[string]struct {
		typ  Type
		name string
		want *Resource
	}{
		"a cluster":               {TypeCluster, "a", cluster},
		"a route of the name":     {TypeRoute, "a", route},
		"no such name":            {TypeCluster, "c", nil},
		"none of the type at all": {TypeSecret, "a", nil},
		"no such type":            {"x", "a", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.Resource(c.typ, c.name); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	if got := s.Of("x").Len(); got != 0 {
		t.Errorf("%d resources of an unknown type", got)
	}
}

func TestTypeVersions(t *testing.T) {
	base := []*Resource{plain(TypeCluster, "a", "1"), plain(TypeCluster, "b", "2"), plain(TypeRoute, "r", "3")}
	before := NewSnapshot("gateway/r/c", slices.Clone(base))
	for name, c := range map[string]struct {
		resources []*Resource
		changed   []Type
	}{
		"the same in another order":        {[]*Resource{base[2], base[1], base[0]}, nil},
		"a new version":                    {[]*Resource{plain(TypeCluster, "a", "9"), base[1], base[2]}, []Type{TypeCluster}},
		"one less":                         {[]*Resource{base[0], base[2]}, []Type{TypeCluster}},
		"one more of a type that had none": {append(slices.Clone(base), plain(TypeSecret, "s", "1")), []Type{TypeSecret}},
		"another name":                     {[]*Resource{base[0], base[1], plain(TypeRoute, "q", "3")}, []Type{TypeRoute}},
		"versions that change places":      {[]*Resource{plain(TypeCluster, "a", "2"), plain(TypeCluster, "b", "1"), base[2]}, []Type{TypeCluster}},
	} {
		t.Run(name, func(t *testing.T) {
			after := NewSnapshot("gateway/r/c", c.resources)
			var changed []Type
			for _, typ := range Types() {
				if before.Version(typ) != after.Version(typ) {
					changed = append(changed, typ)
				}
			}
			if diff := cmp.Diff(c.changed, changed); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever is put in is found again, and nothing else.
func TestSnapshotHoldsWhatItWasGiven(t *testing.T) {
	type key struct {
		typ  Type
		name string
	}
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfDistinct(rapid.Custom(func(t *rapid.T) key {
			return key{rapid.SampledFrom(Types()).Draw(t, "type"), rapid.StringMatching(`[a-c/]{0,3}`).Draw(t, "name")}
		}), func(k key) key { return k }).Draw(t, "keys")
		var resources []*Resource
		for _, k := range keys {
			resources = append(resources, plain(k.typ, k.name, "1"))
		}
		s := NewSnapshot("gateway/r/c", resources)
		total := 0
		for _, typ := range Types() {
			total += s.Of(typ).Len()
		}
		if total != len(keys) {
			t.Fatalf("%d resources by type, %d were given", total, len(keys))
		}
		for _, k := range keys {
			if r := s.Resource(k.typ, k.name); r == nil || r.Type != k.typ || r.Name != k.name {
				t.Fatalf("%v gives %v", k, r)
			}
		}
	})
}
