package world_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

func TestReloadCarriesOverWhatIsKnown(t *testing.T) {
	w := loaded(t)
	key, bound := demandKey("chat"), demandKey("chat")
	bound.Class = "eu"
	health := world.Health{Verdict: world.Unhealthy, Since: start, Streak: -3, At: start, Cause: "connection refused"}
	before, _ := w.Commit([]world.Fact{
		world.EndpointJudged{Endpoint: endpoint("chat@fra-1", 1), Health: health},
		world.EndpointJudged{Endpoint: endpoint("embed@fra-1", 0), Health: health},
		world.PoolServed{Pool: poolKey("chat@fra-1"), At: start},
		world.DemandSeen{Key: key, Cluster: "fra-1", Demand: world.Demand{InFlight: 1}},
		world.DemandSeen{Key: bound, Cluster: "iad-1", Demand: world.Demand{InFlight: 2}},
		world.SharesPublished{Key: bound, Shares: []world.Share{{Cluster: "fra-1", Parts: world.ShareTotal}}},
		world.RoundTripMeasured{From: "fra", To: "iad", RTT: 90 * time.Millisecond},
	})
	was := describe(before)

	// chat grows in fra-1 and moves from iad-1 to gru-1, embed stays, and the rule "eu" is gone.
	pools := map[string]int{"chat@fra-1": 4, "chat@gru-1": 1, "embed@fra-1": 1}
	after, delta := w.Commit([]world.Fact{world.PoliciesLoaded{Set: setOf("two", pools, "health")}})

	if diff := cmp.Diff(world.Delta{Policies: true}, delta); diff != "" {
		t.Errorf("delta (-want +got):\n%s", diff)
	}
	grown := after.Pool(poolKey("chat@fra-1"))
	if len(grown.Endpoints) != 4 || grown.Endpoints[1].Health != health || !grown.ServedAt.Equal(start) {
		t.Errorf("the pool that grew is %+v", grown)
	}
	if after.Pool(poolKey("embed@fra-1")) != before.Pool(poolKey("embed@fra-1")) {
		t.Error("a pool that stays as it was has another pointer")
	}
	if after.Pool(poolKey("chat@iad-1")) != nil || after.Pool(poolKey("chat@gru-1")) == nil {
		t.Error("the pools are not those of the new policies")
	}
	if got := after.DemandFor("chat"); len(got) != 1 || got[0].Key != key {
		t.Errorf("demand of a class that is gone is still there: %v", got)
	}
	if _, ok := after.SharesInForce(bound); ok {
		t.Error("shares of a class that is gone are still there")
	}
	if diff := cmp.Diff(was, describe(before)); diff != "" {
		t.Errorf("the old world changed:\n%s", diff)
	}
	back, _ := w.Commit([]world.Fact{world.PoliciesLoaded{Set: setOf("one", map[string]int{"chat@fra-1": 1, "chat@iad-1": 1})}})
	if _, measured, ok := back.RoundTrip("fra", "iad"); measured || !ok {
		t.Error("a round trip to a region that was gone came back with it")
	}
}

func TestDemandInAClusterThatIsGoneCanOnlyFall(t *testing.T) {
	w := loaded(t)
	key := demandKey("chat")
	w.Commit([]world.Fact{
		world.DemandSeen{Key: key, Cluster: "iad-1", Demand: world.Demand{InFlight: 2}},
		world.PoliciesLoaded{Set: setOf("two", map[string]int{"chat@fra-1": 1})},
	})
	if got := w.Current().DemandFor("chat"); len(got) != 1 || got[0].Demand.InFlight != 2 {
		t.Fatalf("the demand went with the cluster, though its requests did not: %v", got)
	}
	w.Commit([]world.Fact{world.DemandSeen{Key: key, Cluster: "iad-1"}})
	if got := w.Current().DemandFor("chat"); len(got) != 0 {
		t.Errorf("the part of the cluster that is gone can't be forgotten: %v", got)
	}
}

func TestChangesAroundAReloadInOneCommit(t *testing.T) {
	w := loaded(t)
	before := w.Current()
	was := describe(before)
	after, delta := w.Commit([]world.Fact{
		judged("chat@fra-1", 0, world.Healthy),
		world.PoliciesLoaded{Set: setOf("two", map[string]int{"chat@fra-1": 2})},
		judged("chat@fra-1", 1, world.Unhealthy),
		judged("chat@iad-1", 0, world.Healthy), // gone by now
	})
	endpoints := after.Pool(poolKey("chat@fra-1")).Endpoints
	if len(endpoints) != 2 || endpoints[0].Health.Verdict != world.Healthy || endpoints[1].Health.Verdict != world.Unhealthy {
		t.Errorf("endpoints are %+v", endpoints)
	}
	if !delta.Policies || len(after.Pools()) != 1 || describe(before) != was {
		t.Errorf("delta %+v, pools %v", delta, after.Pools())
	}
}

// Draining begins with the policies that first say so, and not with those from which on anything is known.
func TestDrainBegan(t *testing.T) {
	draining := func(hash string, drain bool) *policies.Set {
		set := setOf(hash, map[string]int{"chat@fra-1": 1})
		for i := range set.Clusters {
			set.Clusters[i].Spec.Drain = drain
		}
		return set
	}
	var w world.Writer
	for i, step := range []struct {
		drain bool
		want  time.Duration // since the start; -1: it has not begun
	}{{true, -1}, {true, -1}, {false, -1}, {true, 3 * time.Second}, {true, 3 * time.Second}, {false, -1}, {true, 6 * time.Second}} {
		now, _ := w.Commit([]world.Fact{world.TimeAdvanced{Now: start.Add(time.Duration(i) * time.Second)}, world.PoliciesLoaded{Set: draining(fmt.Sprint(i), step.drain)}})
		got := now.DrainBegan("fra-1")
		if step.want < 0 && !got.IsZero() || step.want >= 0 && !got.Equal(start.Add(step.want)) {
			t.Errorf("step %d: began %v", i, got)
		}
	}
}
