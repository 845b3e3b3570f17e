package world_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// loaded is a writer whose world has two services in two clusters.
func loaded(t testing.TB) *world.Writer {
	t.Helper()
	var w world.Writer
	pools := map[string]int{"chat@fra-1": 3, "chat@iad-1": 2, "embed@fra-1": 1}
	if _, delta := w.Commit([]world.Fact{world.PoliciesLoaded{Set: setOf("one", pools, "eu", "health")}}); !delta.Policies {
		t.Fatal("loading policies is not in the delta")
	}
	return &w
}

func TestCommitOfNothingReportsNothing(t *testing.T) {
	w := loaded(t)
	health := world.Health{Verdict: world.Healthy, Since: start, Streak: 2, At: start}
	load := world.Load{Running: 3, At: start}
	demand := world.Demand{InFlight: 4, At: start}
	shares := []world.Share{{Cluster: "fra-1", Parts: 6000}, {Cluster: "iad-1", Parts: 4000}}
	facts := []world.Fact{
		world.TimeAdvanced{Now: start},
		world.PoliciesLoaded{Set: setOf("one", map[string]int{"chat@fra-1": 1})}, // the same hash is the same set
		world.ViewpointSeen{Viewpoint: world.Viewpoint{Role: "gateway", Region: "fra", Cluster: "fra-1"}},
		world.EndpointJudged{Endpoint: endpoint("chat@fra-1", 0), Health: health},
		world.EndpointMeasured{Endpoint: endpoint("chat@fra-1", 0), Load: load},
		world.PoolServed{Pool: poolKey("chat@fra-1"), At: start},
		world.DemandSeen{Key: demandKey("chat"), Cluster: "fra-1", Demand: demand},
		world.RoundTripMeasured{From: "fra", To: "iad", RTT: 90 * time.Millisecond, At: start},
		world.SharesPublished{Key: demandKey("chat"), Shares: shares, At: start},
	}
	before, _ := w.Commit(facts)
	for _, again := range [][]world.Fact{nil, facts} {
		after, delta := w.Commit(again)
		if !delta.Empty() || after != before || w.Current() != before {
			t.Errorf("a commit of what is known already gave %+v, same world: %t", delta, after == before)
		}
	}
	for _, fact := range facts {
		if after, delta := w.Commit([]world.Fact{fact}); !delta.Empty() || after != before {
			t.Errorf("%T again gave %+v", fact, delta)
		}
	}
}

func TestEmptyWriterGivesOneEmptyWorld(t *testing.T) {
	var w world.Writer
	before := w.Current()
	after, delta := w.Commit([]world.Fact{judged("chat@fra-1", 0, world.Healthy)})
	if before != after || !delta.Empty() || after.Policies() != nil || len(after.Pools()) != 0 {
		t.Errorf("a fact without policies changed the empty world: %+v", delta)
	}
}

// Each step changes one thing. The delta must name it and nothing else, and the world before must not notice.
func TestDeltaNamesWhatChangedAndTheOldWorldStays(t *testing.T) {
	w := loaded(t)
	key := demandKey("chat")
	steps := []struct {
		name  string
		facts []world.Fact
		want  world.Delta
	}{
		{"time", []world.Fact{world.TimeAdvanced{Now: start}}, world.Delta{Time: true}},
		{"time never goes back", []world.Fact{world.TimeAdvanced{Now: start.Add(-time.Second)}}, world.Delta{}},
		{
			"verdicts of two pools, sorted",
			[]world.Fact{judged("embed@fra-1", 0, world.Healthy), judged("chat@iad-1", 1, world.Healthy), judged("chat@iad-1", 0, world.Healthy)},
			world.Delta{Pools: []world.PoolKey{poolKey("chat@iad-1"), poolKey("embed@fra-1")}},
		},
		{
			"the same verdict, seen later",
			[]world.Fact{world.EndpointJudged{Endpoint: endpoint("chat@iad-1", 0), Health: world.Health{Verdict: world.Healthy, Streak: 9, At: start}}},
			world.Delta{Refreshed: true},
		},
		{
			"a first load, even one of nothing",
			[]world.Fact{world.EndpointMeasured{Endpoint: endpoint("chat@fra-1", 2), Load: world.Load{At: start}}},
			world.Delta{Pools: []world.PoolKey{poolKey("chat@fra-1")}},
		},
		{
			"the same load, read later",
			[]world.Fact{world.EndpointMeasured{Endpoint: endpoint("chat@fra-1", 2), Load: world.Load{At: start.Add(time.Second)}}},
			world.Delta{Refreshed: true},
		},
		{"served", []world.Fact{world.PoolServed{Pool: poolKey("chat@fra-1"), At: start}}, world.Delta{Refreshed: true}},
		{"served before that", []world.Fact{world.PoolServed{Pool: poolKey("chat@fra-1"), At: start.Add(-1)}}, world.Delta{}},
		{
			"viewpoints, sorted by their text",
			[]world.Fact{
				world.ViewpointSeen{Viewpoint: world.Viewpoint{Role: "gateway", Region: "fra", Cluster: "fra-1"}},
				world.ViewpointSeen{Viewpoint: world.Viewpoint{Role: "gateway", Region: "fra-x", Cluster: "a"}},
			},
			world.Delta{Viewpoints: []world.ViewpointID{"gateway/fra-x/a", "gateway/fra/fra-1"}},
		},
		{
			"demand", []world.Fact{world.DemandSeen{Key: key, Cluster: "fra-1", Demand: world.Demand{InFlight: 2}}},
			world.Delta{Services: []policies.ServiceName{"chat"}},
		},
		{
			"as much demand, reported later",
			[]world.Fact{world.DemandSeen{Key: key, Cluster: "fra-1", Demand: world.Demand{InFlight: 2, At: start}}},
			world.Delta{Refreshed: true},
		},
		{
			"shares", []world.Fact{world.SharesPublished{Key: key, Shares: []world.Share{{Cluster: "fra-1", Parts: world.ShareTotal}}}},
			world.Delta{Services: []policies.ServiceName{"chat"}},
		},
		{
			"a round trip", []world.Fact{world.RoundTripMeasured{From: "iad", To: "fra", RTT: time.Millisecond, At: start}},
			world.Delta{RoundTrips: true},
		},
		{
			"the same round trip, measured later",
			[]world.Fact{world.RoundTripMeasured{From: "fra", To: "iad", RTT: time.Millisecond, At: start.Add(1)}},
			world.Delta{Refreshed: true},
		},
		{
			"an older round trip", []world.Fact{world.RoundTripMeasured{From: "fra", To: "iad", RTT: time.Second, At: start}},
			world.Delta{},
		},
	}
	for _, step := range steps {
		before := w.Current()
		was := describe(before)
		_, delta := w.Commit(step.facts)
		if diff := cmp.Diff(step.want, delta); diff != "" {
			t.Errorf("%s: delta (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(was, describe(before)); diff != "" {
			t.Errorf("%s: the old world changed:\n%s", step.name, diff)
		}
	}
}

func TestUnknownThingsAreDropped(t *testing.T) {
	w := loaded(t)
	unbound := demandKey("chat")
	unbound.Class = "nobody"
	half := demandKey("chat")
	half.Class = world.ClassOf([]policies.ResidencyName{"eu", "nobody"})
	demand := world.Demand{InFlight: 1}
	for name, fact := range map[string]world.Fact{
		"a pool":              judged("chat@mars-1", 0, world.Healthy),
		"a service's pool":    judged("none@fra-1", 0, world.Healthy),
		"an endpoint":         judged("chat@fra-1", 77, world.Healthy),
		"a pool that served":  world.PoolServed{Pool: poolKey("chat@mars-1"), At: start},
		"demand of a service": world.DemandSeen{Key: demandKey("none"), Demand: demand},
		"demand of a class":   world.DemandSeen{Key: unbound, Demand: demand},
		"demand of a half":    world.DemandSeen{Key: half, Demand: demand},
		"demand of a cluster": world.DemandSeen{Key: demandKey("chat"), Cluster: "mars-1", Demand: demand},
		"no demand":           world.DemandSeen{Key: demandKey("chat"), Cluster: "fra-1"},
		"shares of a service": world.SharesPublished{Key: demandKey("none"), At: start},
		"a region":            world.RoundTripMeasured{From: "fra", To: "mars", RTT: 1, At: start},
		"another region":      world.RoundTripMeasured{From: "atlantis", To: "fra", RTT: 1, At: start},
		"a region to itself":  world.RoundTripMeasured{From: "fra", To: "fra", RTT: 1, At: start},
		"no round trip":       world.RoundTripMeasured{From: "fra", To: "iad", At: start},
		"no policies":         world.PoliciesLoaded{},
	} {
		before := w.Current()
		if after, delta := w.Commit([]world.Fact{fact}); !delta.Empty() || after != before {
			t.Errorf("%s that is not known gave %+v", name, delta)
		}
	}
}

func TestLastFactWins(t *testing.T) {
	w := loaded(t)
	got, delta := w.Commit([]world.Fact{judged("chat@fra-1", 1, world.Unhealthy), judged("chat@fra-1", 1, world.Healthy)})
	if v := got.Pool(poolKey("chat@fra-1")).Endpoints[1].Health.Verdict; v != world.Healthy {
		t.Errorf("the verdict is %d, not that of the last fact", v)
	}
	if len(delta.Pools) != 1 {
		t.Errorf("two facts about one endpoint gave the pools %v", delta.Pools)
	}
}

func TestOnlyPoolsThatChangedAreReplaced(t *testing.T) {
	w := loaded(t)
	before := w.Current()
	after, _ := w.Commit([]world.Fact{judged("chat@iad-1", 0, world.Healthy)})
	for i, p := range before.Pools() {
		if same := p == after.Pools()[i]; same == (p.Key == poolKey("chat@iad-1")) {
			t.Errorf("%s: same pointer: %t", p.Key, same)
		}
	}
}

func TestDemandIsTheSumOfItsParts(t *testing.T) {
	w := loaded(t)
	key := demandKey("chat")
	w.Commit([]world.Fact{
		world.DemandSeen{Key: key, Cluster: "iad-1", Demand: world.Demand{InFlight: 1, RequestsPerSecond: 10, At: start.Add(1)}},
		world.DemandSeen{Key: key, Cluster: "fra-1", Demand: world.Demand{InFlight: 2, RequestsPerSecond: 20, At: start}},
	})
	want := []world.DemandOf{{Key: key, Demand: world.Demand{InFlight: 3, RequestsPerSecond: 30, At: start.Add(1)}}}
	if diff := cmp.Diff(want, w.Current().DemandFor("chat")); diff != "" {
		t.Errorf("sum (-want +got):\n%s", diff)
	}
	w.Commit([]world.Fact{world.DemandSeen{Key: key, Cluster: "iad-1"}})
	if got := w.Current().DemandFor("chat"); len(got) != 1 || got[0].Demand.InFlight != 2 {
		t.Errorf("after one part is forgotten the demand is %v", got)
	}
	w.Commit([]world.Fact{world.DemandSeen{Key: key, Cluster: "fra-1"}})
	if got, parts := w.Current().DemandFor("chat"), w.Current().DemandParts("chat"); len(got)+len(parts) != 0 {
		t.Errorf("after all parts are forgotten there are %v, %v", got, parts)
	}
}

func TestSharesAreSortedAndCopied(t *testing.T) {
	w := loaded(t)
	given := []world.Share{{Cluster: "iad-1", Parts: 1}, {Cluster: "fra-1", Parts: 9999}}
	w.Commit([]world.Fact{world.SharesPublished{Key: demandKey("chat"), Shares: given, At: start}})
	given[0].Parts = 5
	got, ok := w.Current().SharesInForce(demandKey("chat"))
	want := world.SharesOf{Shares: []world.Share{{Cluster: "fra-1", Parts: 9999}, {Cluster: "iad-1", Parts: 1}}, At: start}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("shares, found %t (-want +got):\n%s", ok, diff)
	}
}

func TestOldWorldsAreNotKeptAlive(t *testing.T) {
	w := loaded(t)
	gone := make(chan struct{})
	runtime.AddCleanup(w.Current(), func(struct{}) { close(gone) }, struct{}{})
	w.Commit([]world.Fact{judged("chat@fra-1", 0, world.Healthy)})
	w.Commit([]world.Fact{judged("chat@fra-1", 0, world.Unhealthy)})
	runtime.GC()
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the first world is still reachable after two commits: memory grows with every commit")
	}
	runtime.KeepAlive(w)
}

func TestMergeOfDeltas(t *testing.T) {
	a := world.Delta{Time: true, Services: []policies.ServiceName{"b"}, Viewpoints: []world.ViewpointID{"v"}}
	b := world.Delta{Policies: true, RoundTrips: true, Refreshed: true, Services: []policies.ServiceName{"a", "b"}, Pools: []world.PoolKey{poolKey("a@c")}}
	want := world.Delta{
		Policies: true, RoundTrips: true, Refreshed: true, Time: true, Viewpoints: []world.ViewpointID{"v"},
		Services: []policies.ServiceName{"a", "b"}, Pools: []world.PoolKey{poolKey("a@c")},
	}
	if diff := cmp.Diff(want, a.Merge(b)); diff != "" {
		t.Errorf("merge (-want +got):\n%s", diff)
	}
	if !(world.Delta{Time: true, Refreshed: true}).OnlyTime() || want.OnlyTime() || want.Empty() {
		t.Error("OnlyTime or Empty is wrong about a merged delta")
	}
}
