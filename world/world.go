package world

import (
	"cmp"
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/policies"
)

// World is what is known at one instant. It is immutable; see the package comment.
type World struct {
	now        time.Time
	set        *policies.Set
	viewpoints []Viewpoint // sorted by ID
	pools      []*Pool     // sorted by key
	traffic    []*Traffic  // sorted by service
	roundTrips *RoundTrips
	places     map[policies.RegionName]geo.Place
	// drains are when the draining of clusters began.
	drains map[policies.ClusterName]time.Time
	// accelerators are those of clusters that were counted.
	accelerators map[policies.ClusterName]*Accelerators
}

// RoundTrips is what was measured between regions. It is immutable, and replaced when something in it changes.
type RoundTrips struct{ measured map[regionPair]roundTrip }

// roundTrip is what was measured between two regions.
type roundTrip struct {
	rtt time.Duration
	at  time.Time
}

// regionPair has its regions in order, so that both directions are one key.
type regionPair struct{ a, b policies.RegionName }

func pairOf(a, b policies.RegionName) regionPair {
	if b < a {
		a, b = b, a
	}
	return regionPair{a, b}
}

// Now is the time of this world.
func (w *World) Now() time.Time { return w.now }

// Policies is the set in force; nil before the first was loaded.
func (w *World) Policies() *policies.Set { return w.set }

// Viewpoints are those that proxies have, sorted by ID.
func (w *World) Viewpoints() []Viewpoint { return w.viewpoints }

// Pools are all pools that the policies name, sorted by key.
func (w *World) Pools() []*Pool { return w.pools }

// PoolsOf are the pools of one service, sorted by cluster.
func (w *World) PoolsOf(service policies.ServiceName) []*Pool {
	lo, _ := slices.BinarySearchFunc(w.pools, PoolKey{Service: service}, comparePool)
	hi := lo
	for hi < len(w.pools) && w.pools[hi].Key.Service == service {
		hi++
	}
	return w.pools[lo:hi:hi]
}

// Pool finds a pool; nil where the policies name none.
func (w *World) Pool(key PoolKey) *Pool {
	i, ok := slices.BinarySearchFunc(w.pools, key, comparePool)
	if !ok {
		return nil
	}
	return w.pools[i]
}

// DrainBegan is when other policies began to have a cluster drained; zero where it is not being drained, or was from the first
// policies on.
func (w *World) DrainBegan(cluster policies.ClusterName) time.Time { return w.drains[cluster] }

// Accelerators is what a cluster has of accelerators; nil where that is not known.
func (w *World) Accelerators(cluster policies.ClusterName) *Accelerators {
	return w.accelerators[cluster]
}

// RoundTrips are all that were measured. While policies and this are the same pointers, RoundTrip answers the same.
func (w *World) RoundTrips() *RoundTrips { return w.roundTrips }

func (w *World) measured() map[regionPair]roundTrip {
	if w.roundTrips == nil {
		return nil
	}
	return w.roundTrips.measured
}

// RoundTrip is the round trip between two regions, and whether it was measured. What was not is estimated from the
// great circle; a region to itself is 0. ok is false where a region is not known.
func (w *World) RoundTrip(from, to policies.RegionName) (rtt time.Duration, measured, ok bool) {
	a, okA := w.places[from]
	b, okB := w.places[to]
	if !okA || !okB {
		return 0, false, false
	}
	if from == to {
		return 0, false, true
	}
	if m, measured := w.measured()[pairOf(from, to)]; measured {
		return m.rtt, true, true
	}
	distance, err := geo.Distance(a.Point, b.Point)
	if err != nil {
		return 0, false, false
	}
	return geo.EstimateRTT(distance), false, true
}

// RegionOf is the region of a cluster; ok is false where the policies name no such cluster.
func (w *World) RegionOf(cluster policies.ClusterName) (region policies.RegionName, ok bool) {
	if w.set == nil {
		return "", false
	}
	c, ok := w.set.Cluster(cluster)
	if !ok {
		return "", false
	}
	return c.Spec.Region, true
}

// hasRegion says whether the policies in force name a region.
func (w *World) hasRegion(name policies.RegionName) bool {
	_, ok := w.places[name]
	return ok
}

func comparePool(p *Pool, k PoolKey) int               { return p.Key.Compare(k) }
func compareViewpoint(v Viewpoint, id ViewpointID) int { return cmp.Compare(v.ID(), id) }
