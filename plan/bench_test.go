package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// benchWorld is a settled world with demand from every viewpoint for every service, all of whose shares are in force.
func benchWorld(b *testing.B, set *policies.Set, inFlight float64) (*world.Writer, *plan.Memo) {
	var writer world.Writer
	facts := opening(set)
	for _, s := range set.Services {
		for _, c := range set.Clusters {
			key := world.DemandKey{Viewpoint: viewpointOf(c).ID(), Service: s.Metadata.Name, Class: world.AnyClass}
			facts = append(facts, world.DemandSeen{Key: key, Demand: world.Demand{InFlight: inFlight, At: start}})
		}
	}
	writer.Commit(facts)
	memo := &plan.Memo{}
	var shares []world.Fact
	for _, d := range plan.Compute(writer.Current(), memo).Decisions {
		key := world.DemandKey{Viewpoint: d.Viewpoint, Service: d.Service, Class: d.Class}
		shares = append(shares, world.SharesPublished{Key: key, Shares: d.Shares(), At: start})
	}
	writer.Commit(shares)
	plan.Compute(writer.Current(), memo)
	b.ReportAllocs()
	b.ResetTimer()
	return &writer, memo
}

// BenchmarkCompute plans 1,000 services with 10 pools each, seen from the gateways of 10 or 100 clusters, in two classes.
func BenchmarkCompute(b *testing.B) {
	for _, clusters := range []int{10, 100} {
		set := fleet(clusters, 1000, 10)
		b.Run(fmt.Sprintf("clusters=%d/cold", clusters), func(b *testing.B) {
			writer, _ := benchWorld(b, set, 0.1)
			for b.Loop() {
				plan.Compute(writer.Current(), nil)
			}
		})
		b.Run(fmt.Sprintf("clusters=%d/nothing-changed", clusters), func(b *testing.B) {
			writer, memo := benchWorld(b, set, 0.1)
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				w, _ := writer.Commit([]world.Fact{world.TimeAdvanced{Now: start.Add(time.Duration(i+1) * time.Second)}})
				b.StartTimer()
				plan.Compute(w, memo)
			}
		})
		b.Run(fmt.Sprintf("clusters=%d/one-pool-changed", clusters), func(b *testing.B) {
			writer, memo := benchWorld(b, set, 0.1)
			pool := writer.Current().Pools()[5000]
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				w, _ := writer.Commit([]world.Fact{world.EndpointJudged{
					Endpoint: world.EndpointKey{Pool: pool.Key, Address: pool.Endpoints[0].Address},
					Health:   world.Health{Verdict: []world.Verdict{world.Unhealthy, world.Healthy}[i%2]},
				}})
				b.StartTimer()
				plan.Compute(w, memo)
			}
		})
	}
}

// BenchmarkSpill plans one service anew because one demand changed, where demand does not fit the nearest pools: from
// 100 viewpoints to 10 and 100 pools.
func BenchmarkSpill(b *testing.B) {
	for _, pools := range []int{10, 100} {
		b.Run(fmt.Sprintf("pools=%d", pools), func(b *testing.B) {
			writer, memo := benchWorld(b, fleet(100, 1, pools), float64(pools)/10)
			key := writer.Current().DemandFor("s0000")[0].Key
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				w, _ := writer.Commit([]world.Fact{world.DemandSeen{Key: key, Demand: world.Demand{InFlight: float64(1 + i%2), At: start}}})
				b.StartTimer()
				plan.Compute(w, memo)
			}
		})
	}
}
