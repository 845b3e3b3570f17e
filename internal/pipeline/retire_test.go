package pipeline

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// without is the example without a cluster.
func without(t *testing.T, cluster policies.ClusterName) *policies.Set {
	t.Helper()
	set := example(t)
	set.Clusters = slices.DeleteFunc(set.Clusters, func(c policies.Cluster) bool { return c.Metadata.Name == cluster })
	for i := range set.Services {
		set.Services[i].Spec.Pools = slices.DeleteFunc(set.Services[i].Spec.Pools, func(p policies.Pool) bool { return p.Cluster == cluster })
	}
	set.Hash = "without " + string(cluster)
	return set
}

// A removed cluster is kept while requests are under way there, for a while where they do not end, and not at all where it is back.
func TestARemovedClusterRetires(t *testing.T) {
	whole, less := example(t), without(t, "dub-1")
	for name, c := range map[string]struct {
		busy, back time.Duration // for how long requests are reported, and when it is named again
		least      time.Duration
		most       time.Duration
	}{
		"nothing is under way":    {0, 0, 5 * time.Second, 6 * time.Second},
		"requests end":            {30 * time.Second, 0, 30 * time.Second, 90 * time.Second},
		"requests go on for ever": {time.Hour, 0, 10 * time.Minute, 10*time.Minute + time.Second},
		"it is named again":       {time.Hour, 3 * time.Second, 3 * time.Second, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := New(Config{Publish: func(*xds.Snapshot, time.Time) {}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- p.Run(ctx) }()
				viewpoint := world.Viewpoint{Role: policies.RoleGateway, Region: "frankfurt", Cluster: "fra-1"}
				p.SetPolicies(whole)
				p.SeeViewpoint(viewpoint)
				time.Sleep(time.Second)
				p.SetPolicies(less)
				began, gone := time.Now(), time.Duration(0)
				for gone == 0 && time.Since(began) < time.Hour {
					if time.Since(began) < c.busy {
						p.Signal(health.Reported{Viewpoint: viewpoint.ID(), Service: "llama", Class: world.AnyClass, Cluster: "dub-1", InProgress: 3, Interval: time.Second, At: time.Now()})
					}
					if c.back > 0 && time.Since(began) >= c.back {
						p.SetPolicies(whole)
					}
					time.Sleep(500 * time.Millisecond)
					state := p.State()
					kept, ok := state.World.Policies().Cluster("dub-1")
					switch {
					case len(state.Retiring) == 0:
						gone = time.Since(began)
						if ok != (c.back > 0) || ok && kept.Spec.Drain {
							t.Errorf("at the end: %+v", kept)
						}
					case !ok || !kept.Spec.Drain || state.World.Pool(world.PoolKey{Service: "llama", Cluster: "dub-1"}) == nil:
						t.Fatalf("while it retires: %+v", kept)
					}
				}
				if gone < c.least || gone > c.most {
					t.Errorf("it was kept for %v, want %v to %v", gone, c.least, c.most)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
