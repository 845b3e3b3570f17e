package health_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// What servers say of themselves in responses comes into the world by pool, over all who reported it; the newest counts.
func TestWhatServersSayComesIntoTheWorld(t *testing.T) {
	at := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	set := &policies.Set{Clusters: []policies.Cluster{{Metadata: policies.Metadata[policies.ClusterName]{Name: "fra-1"}}},
		Services: []policies.Service{{Metadata: policies.Metadata[policies.ServiceName]{Name: "chat"}, Spec: policies.ServiceSpec{Pools: []policies.Pool{{Cluster: "fra-1"}}}}}}
	var w world.Writer
	w.Commit([]world.Fact{world.TimeAdvanced{Now: at}, world.PoliciesLoaded{Set: set}})
	says := func(viewpoint world.ViewpointID, cluster policies.ClusterName, waiting float64, at time.Time) health.Signal {
		return health.Reported{Viewpoint: viewpoint, Service: "chat", Cluster: cluster, Interval: time.Second, At: at, Load: world.ServerLoad{Waiting: world.Mean{Sum: waiting, Count: 1}}}
	}
	pool := world.PoolKey{Service: "chat", Cluster: "fra-1"}
	now, _ := w.Commit(health.Judge(w.Current(), []health.Signal{says("a", "fra-1", 4, at), says("b", "fra-1", 8, at), says("b", "iad-1", 99, at)}, at, nil))
	want := world.PoolLoad{ServerLoad: world.ServerLoad{Waiting: world.Mean{Sum: 12, Count: 2}}, At: at}
	if diff := cmp.Diff(want, now.Pool(pool).Said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	now, _ = w.Commit([]world.Fact{world.PoolSaid{Pool: pool, Load: world.PoolLoad{At: at.Add(-time.Second)}}})
	if diff := cmp.Diff(want, now.Pool(pool).Said); diff != "" {
		t.Errorf("something older replaced it (-want +got):\n%s", diff)
	}
}
