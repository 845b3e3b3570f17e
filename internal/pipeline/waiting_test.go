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

// A control plane that has just started plans nothing before clusters have said what they have, or have had the time to.
func TestTheFirstPlanWaitsForClusters(t *testing.T) {
	set := example(t)
	read := set.Services[0].Spec.Pools[0].Cluster
	set.Services[0].Spec.Pools[0].Endpoints = nil
	set.Services[0].Spec.Pools[0].From = &policies.PoolSource{Kind: policies.FromService, Namespace: "models", Name: "llama"}
	found := world.PoolFound{Pool: world.PoolKey{Service: set.Services[0].Metadata.Name, Cluster: read},
		Endpoints: []world.FoundEndpoint{{Address: netip.MustParseAddrPort("10.0.0.1:8000"), Condition: world.Ready}}}
	for name, c := range map[string]struct{ says, want time.Duration }{
		"a cluster that answers": {3 * time.Second, 3 * time.Second},
		"one that does not":      {time.Hour, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, first, members := time.Now(), time.Duration(0), 0
				p, err := New(Config{
					Publish: func(*xds.Snapshot, time.Time) {
						if first == 0 {
							first = time.Since(began)
						}
					},
					OnMembers: func(*world.World) { members++ },
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- p.Run(ctx) }()
				p.SetPolicies(set)
				p.SeeViewpoint(world.Viewpoint{Role: policies.RoleGateway, Region: "frankfurt", Cluster: "fra-1"})
				synctest.Wait()
				if members != 1 {
					t.Errorf("%d were told of the endpoints that policies list, while it waits", members)
				}
				time.Sleep(min(c.says, 20*time.Second))
				p.Find(found)
				synctest.Wait()
				if first < c.want || first > c.want+time.Second {
					t.Errorf("published after %v, want %v", first, c.want)
				}
				if members != 2 {
					t.Errorf("the cluster's endpoints came %d times", members-1)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
