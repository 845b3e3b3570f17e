package pipeline

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// What is counted of a cluster shows at once. It is planned anew only where other numbers of replicas fit: pods that come and go all
// day must not cost a plan each.
func TestCountsShowAndArePlannedWhereMoreFits(t *testing.T) {
	set := overlapping(t, true)
	synctest.Test(t, func(t *testing.T) {
		p, err := New(Config{Publish: func(*xds.Snapshot, time.Time) {}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		p.SetPolicies(set)
		for _, c := range []policies.ClusterName{"fra-1", "iad-1"} {
			p.Find(world.PoolFound{Pool: world.PoolKey{Service: "llama", Cluster: c},
				Endpoints: []world.FoundEndpoint{{Address: netip.MustParseAddrPort("10.0.0.1:8000"), Condition: world.Ready}}})
		}
		time.Sleep(time.Second)
		for _, step := range []struct {
			free, fit int64
			plans     bool
		}{{4, 1, true}, {3, 1, false}, {2, 0, true}} {
			before := p.State().Cycle
			p.Count(world.AcceleratorsCounted{
				Cluster: "fra-1", Accelerators: &world.Accelerators{Rows: []world.Accelerator{{Product: "h100", Total: 8, Used: 8 - step.free, Free: step.free}}},
				Pools: []world.PoolReplicas{{Service: "llama", Fit: step.fit}},
			})
			time.Sleep(time.Second)
			state := p.State()
			if a := state.World.Accelerators("fra-1"); a == nil || a.Rows[0].Free != step.free {
				t.Errorf("of %d free GPUs, the state shows %+v", step.free, a)
			}
			if plans := state.Cycle > before; plans != step.plans {
				t.Errorf("%d fit: planned anew: %v", step.fit, plans)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
