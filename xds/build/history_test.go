package build

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// drawFact draws a fact about what a set names.
func drawFact(t *rapid.T, set *policies.Set) world.Fact {
	s := rapid.SampledFrom(set.Services).Draw(t, "service")
	if len(s.Spec.Pools) == 0 {
		return world.TimeAdvanced{}
	}
	p := rapid.SampledFrom(s.Spec.Pools).Draw(t, "pool")
	c := rapid.SampledFrom(set.Clusters).Draw(t, "cluster")
	v := world.Viewpoint{Role: policies.RoleGateway, Region: c.Spec.Region, Cluster: c.Metadata.Name}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		v.Dialect = rapid.SampledFrom([]world.Dialect{"", world.DialectEnvoy136, world.DialectGRPC}).Draw(t, "dialect")
		return world.ViewpointSeen{Viewpoint: v}
	case 1:
		key := world.DemandKey{Viewpoint: v.ID(), Service: s.Metadata.Name, Class: world.AnyClass}
		return world.DemandSeen{Key: key, Cluster: p.Cluster, Demand: world.Demand{InFlight: rapid.SampledFrom([]float64{0, 5, 1000}).Draw(t, "in flight")}}
	}
	if len(p.Endpoints) == 0 {
		return world.TimeAdvanced{}
	}
	e := world.EndpointKey{Pool: world.PoolKey{Service: s.Metadata.Name, Cluster: p.Cluster}, Address: rapid.SampledFrom(p.Endpoints).Draw(t, "endpoint").AddrPort()}
	return world.EndpointJudged{Endpoint: e, Health: world.Health{Verdict: rapid.SampledFrom([]world.Verdict{world.Healthy, world.Unhealthy, world.Unknown}).Draw(t, "verdict")}}
}

// without is a set without one of its services.
func without(set *policies.Set, service policies.ServiceName) *policies.Set {
	less := *set
	less.Services = slices.DeleteFunc(slices.Clone(set.Services), func(s policies.Service) bool { return s.Metadata.Name == service })
	less.Hash += " without " + string(service)
	return &less
}

// contents are versions and names of all that snapshots hold.
func contents(snapshots []*xds.Snapshot) map[world.ViewpointID]map[string]string {
	all := map[world.ViewpointID]map[string]string{}
	for _, s := range snapshots {
		all[s.Viewpoint] = map[string]string{}
		for _, typ := range xds.Types() {
			all[s.Viewpoint][typ.Short()] = s.Version(typ)
		}
	}
	return all
}

// Whatever has been built before, what is built is what is built from scratch.
func TestMemoChangesNothing(t *testing.T) {
	whole := load(t, "testdata/mesh.yaml").Policies()
	sets := []*policies.Set{whole}
	for _, s := range whole.Services {
		sets = append(sets, without(whole, s.Metadata.Name))
	}
	rapid.Check(t, func(t *rapid.T) {
		var writer world.Writer
		var memo Memo
		var planned plan.Memo
		set := whole
		writer.Commit([]world.Fact{world.PoliciesLoaded{Set: set}})
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "reload") == 0 {
				set = rapid.SampledFrom(sets).Draw(t, "set")
				writer.Commit([]world.Fact{world.PoliciesLoaded{Set: set}})
			}
			for range rapid.IntRange(1, 5).Draw(t, "facts") {
				writer.Commit([]world.Fact{drawFact(t, set)})
			}
			w := writer.Current()
			p := plan.Compute(w, &planned)
			got, err := Build(w, p, &memo)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Build(w, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(contents(want), contents(got)); diff != "" {
				t.Fatalf("what is built depends on the memo (-from scratch +incremental):\n%s", diff)
			}
			again, err := Build(w, p, &memo)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, again) {
				t.Fatal("the same world gave other snapshots")
			}
		}
	})
}
