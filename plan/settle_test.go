package plan_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// TestLoopsSettle runs closed loops of many kinds: constant rates, one of them more than the nearest cluster takes,
// though all together take it. Measurements are seconds late, and yet shares come to rest. On the way there they may
// overshoot, for a queue is demand as well until it is gone; they may not swing. A cluster in
// the middle gains what the nearer lose, loses what the farther gain, and turns around more often than those.
func TestLoopsSettle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := drawLoop(t, rt)
		for range 60 {
			l.second()
		}
		for at, turns := range l.turns {
			if turns > 5 {
				rt.Errorf("the share of %s turned around %d times", at.cluster, turns)
			}
		}
		l.moved = 0
		for range 20 {
			l.second()
		}
		if l.moved > 3 {
			rt.Errorf("after a minute %g points moved within 20 s", l.moved)
		}
	})
}

func drawLoop(t *testing.T, rt *rapid.T) *loop {
	set := fleet(3, 1, 3)
	set.Services[0].Spec.Capacity.SlotsPerEndpoint = rapid.SampledFrom([]int{8, 32, 128}).Draw(rt, "slots")
	set.Traffics = []policies.Traffic{{Metadata: named(policies.TrafficName("t"))}}
	set.Traffics[0].Spec.Spill = policies.Spill{TargetUtilization: 80, MaxShiftPerSecond: rapid.SampledFrom([]int{10, 20, 50, 100}).Draw(rt, "max shift")}
	s := &story{simulation: &simulation{t: t}}
	s.commit(opening(set)...)
	s.compute()
	s.publish()
	l := s.loop("s0000", time.Duration(rapid.SampledFrom([]int{500, 2000, 10_000}).Draw(rt, "takes"))*time.Millisecond)
	for i, c := range set.Clusters {
		busy := 1.2
		if i > 0 {
			busy = rapid.SampledFrom([]float64{0.1, 0.3, 0.5}).Draw(rt, "busy")
		}
		slots := float64(2 * set.Services[0].Spec.Capacity.SlotsPerEndpoint)
		l.setRate(world.DemandKey{Viewpoint: viewpointOf(c).ID(), Service: "s0000", Class: world.AnyClass}, busy*slots/l.takes.Seconds())
	}
	return l
}
