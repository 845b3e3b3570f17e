package world_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

var (
	somePools    = []string{"chat@fra-1", "chat@iad-1", "embed@fra-1", "embed@mars-1"}
	someClusters = []policies.ClusterName{"", "fra-1", "iad-1", "mars-1"}
	someRegions  = []policies.RegionName{"fra", "iad", "mars"}
	someClasses  = []world.ClassID{world.AnyClass, "eu", "health", "eu+health", ""}
	someServices = []policies.ServiceName{"chat", "embed", "none"}
	someSets     = []*policies.Set{
		setOf("one", map[string]int{"chat@fra-1": 3, "chat@iad-1": 2, "embed@fra-1": 1}, "eu", "health"),
		setOf("two", map[string]int{"chat@fra-1": 2, "embed@fra-1": 2}, "eu"),
		setOf("three", map[string]int{"chat@iad-1": 4}),
		readSet("four", "chat", false), readSet("five", "chat", true),
	}
)

// drawFact draws a fact, now and then about something that no policy names.
func drawFact(t *rapid.T) world.Fact {
	at := start.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "at")) * time.Second)
	e := endpoint(rapid.SampledFrom(somePools).Draw(t, "pool"), rapid.IntRange(0, 4).Draw(t, "endpoint"))
	key := world.DemandKey{
		Viewpoint: rapid.SampledFrom([]world.ViewpointID{"a/b/c", "d/e/f"}).Draw(t, "viewpoint"),
		Service:   rapid.SampledFrom(someServices).Draw(t, "service"),
		Class:     rapid.SampledFrom(someClasses).Draw(t, "class"),
	}
	cluster := rapid.SampledFrom(someClusters).Draw(t, "cluster")
	n := rapid.IntRange(0, 3).Draw(t, "n")
	switch rapid.IntRange(0, 10).Draw(t, "kind") {
	case 0:
		return world.PoliciesLoaded{Set: rapid.SampledFrom(someSets).Draw(t, "set")}
	case 1:
		return world.ViewpointSeen{Viewpoint: world.Viewpoint{Role: "gateway", Region: "fra", Cluster: cluster}}
	case 2:
		return world.EndpointJudged{Endpoint: e, Health: world.Health{Verdict: world.Verdict(n % 3), At: at}}
	case 3:
		return world.EndpointMeasured{Endpoint: e, Load: world.Load{Running: n, At: at}}
	case 4:
		return world.PoolServed{Pool: e.Pool, At: at}
	case 5:
		return world.DemandSeen{Key: key, Cluster: cluster, Demand: world.Demand{InFlight: float64(n), At: at}}
	case 6:
		from, to := rapid.SampledFrom(someRegions).Draw(t, "from"), rapid.SampledFrom(someRegions).Draw(t, "to")
		return world.RoundTripMeasured{From: from, To: to, RTT: time.Duration(n), At: at}
	case 7:
		return world.SharesPublished{Key: key, Shares: []world.Share{{Cluster: cluster, Parts: uint32(n)}}, At: at}
	case 8:
		return world.AcceleratorsCounted{Cluster: cluster, Accelerators: drawAccelerators(n), Pools: []world.PoolReplicas{
			{Service: rapid.SampledFrom(someServices).Draw(t, "counted"), Fit: int64(n), Holds: []world.Holding{{Product: "h100", Devices: at.Unix() % 3}}}}}
	case 9:
		f := world.PoolFound{Pool: e.Pool}
		for i := range n {
			f.Endpoints = append(f.Endpoints, world.FoundEndpoint{Address: endpoint(rapid.SampledFrom(somePools).Draw(t, "found"), i).Address})
		}
		slices.SortFunc(f.Endpoints, func(a, b world.FoundEndpoint) int { return a.Address.Compare(b.Address) })
		f.Endpoints = slices.Compact(f.Endpoints)
		return f
	}
	return world.TimeAdvanced{Now: at}
}

// drawAccelerators are those of a cluster with so many GPUs; none where nothing is known.
func drawAccelerators(n int) *world.Accelerators {
	if n == 0 {
		return nil
	}
	return &world.Accelerators{Rows: []world.Accelerator{{Product: "h100", Total: int64(n), Free: int64(n)}}}
}

// Facts committed in batches give the world that the same facts give in one batch from the start; every world that was
// handed out on the way stays as it was; and a delta is empty exactly when the pointer stays.
func TestBatchesAreReplayedFromScratch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w, scratch world.Writer
		var history []world.Fact
		seen := map[*world.World]string{}
		for range rapid.IntRange(1, 12).Draw(t, "batches") {
			batch := rapid.SliceOfN(rapid.Custom(drawFact), 0, 12).Draw(t, "batch")
			history = append(history, batch...)
			before := w.Current()
			after, delta := w.Commit(batch)
			seen[after] = describe(after)
			checkDelta(t, before, after, delta)
		}
		replayed, _ := scratch.Commit(history)
		if diff := cmp.Diff(describe(replayed), describe(w.Current())); diff != "" {
			t.Fatalf("replay from scratch differs (-scratch +batches):\n%s", diff)
		}
		for old, was := range seen {
			if diff := cmp.Diff(was, describe(old)); diff != "" {
				t.Fatalf("a world that was handed out has changed:\n%s", diff)
			}
		}
	})
}

func checkDelta(t *rapid.T, before, after *world.World, delta world.Delta) {
	if delta.Empty() != (before == after) {
		t.Fatalf("delta %+v, same pointer: %t", delta, before == after)
	}
	if !slices.IsSorted(delta.Services) || !slices.IsSorted(delta.Viewpoints) || !slices.IsSortedFunc(delta.Pools, world.PoolKey.Compare) {
		t.Fatalf("delta is not sorted: %+v", delta)
	}
	if delta.Policies {
		return
	}
	for _, p := range after.Pools() {
		old := before.Pool(p.Key)
		if old != p && !delta.Refreshed && !delta.Accelerators && !slices.Contains(delta.Pools, p.Key) {
			t.Fatalf("%s was replaced without a word in %+v", p.Key, delta)
		}
		if old.Replicas != p.Replicas && !delta.Accelerators {
			t.Fatalf("%s holds something else without a word in %+v", p.Key, delta)
		}
		if planned(old) != planned(p) && !slices.Contains(delta.Pools, p.Key) {
			t.Fatalf("%s changed and is not in %+v", p.Key, delta)
		}
	}
}

// planned is what a plan can depend on.
func planned(p *world.Pool) string {
	text := fmt.Sprintln(p.Fit())
	for _, e := range p.Endpoints {
		text += fmt.Sprint(e.Health.Verdict, e.Load.Running, e.Load.At.IsZero(), " ")
	}
	return text
}
