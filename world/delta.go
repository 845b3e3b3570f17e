package world

import (
	"cmp"
	"slices"

	"github.com/meridian-mesh/meridian/policies"
)

// Delta says what a Commit changed, so that those downstream look only there. Its slices are sorted and hold no value
// twice.
type Delta struct {
	// Policies says that another policy set is in force: everything may have changed.
	Policies bool
	// Viewpoints are those seen for the first time.
	Viewpoints []ViewpointID
	// Pools are those in which a verdict, the numbers of a load, or the endpoints changed.
	Pools []PoolKey
	// Members says that some pool has other endpoints than before.
	Members bool
	// Services are those whose amount of demand, or whose shares in force, changed.
	Services []policies.ServiceName
	// RoundTrips says that a measured round trip changed.
	RoundTrips bool
	// Accelerators says that what is known of a cluster's accelerators, or of what a pool holds of them, changed. No plan depends on
	// that; pools of which other numbers of replicas fit than before stand in Pools.
	Accelerators bool
	// Refreshed says that the memory of judging changed somewhere: when things were last seen, streaks, causes. No
	// plan depends on it, and where nothing else changed there is nothing to do; a quiet fleet that is probed many
	// times a second changes only this and Time.
	Refreshed bool
	// Time says that the clock moved.
	Time bool
}

// Empty says that nothing changed at all.
func (d Delta) Empty() bool { return !d.Time && !d.Refreshed && !d.Accelerators && d.OnlyTime() }

// OnlyTime says that nothing changed on which a plan depends but, perhaps, the time.
func (d Delta) OnlyTime() bool {
	return !d.Policies && !d.RoundTrips && len(d.Viewpoints) == 0 && len(d.Pools) == 0 && len(d.Services) == 0
}

// Merge is what two commits, one after the other, changed together.
func (d Delta) Merge(later Delta) Delta {
	return Delta{
		Policies:     d.Policies || later.Policies,
		Members:      d.Members || later.Members,
		Viewpoints:   union(d.Viewpoints, later.Viewpoints, cmp.Compare),
		Pools:        union(d.Pools, later.Pools, PoolKey.Compare),
		Services:     union(d.Services, later.Services, cmp.Compare),
		RoundTrips:   d.RoundTrips || later.RoundTrips,
		Accelerators: d.Accelerators || later.Accelerators,
		Refreshed:    d.Refreshed || later.Refreshed,
		Time:         d.Time || later.Time,
	}
}

// union is what either of two slices holds, sorted, nothing twice.
func union[T comparable](a, b []T, compare func(T, T) int) []T {
	all := slices.Concat(a, b)
	slices.SortFunc(all, compare)
	return slices.Compact(all)
}
