package world

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/meridian-mesh/meridian/policies"
)

// Writer moves the world on. It has one owner; a World that it returned is never changed again. The zero value is
// ready, with an empty world.
type Writer struct {
	current *World
}

var empty = &World{}

// Current is the world as of the last Commit.
func (w *Writer) Current() *World {
	if w.current == nil {
		return empty
	}
	return w.current
}

// Commit folds facts into a new world, in order, so that the last of two facts about one thing holds. Facts about
// what the policies do not name (pools, endpoints, regions, services, classes) are dropped: their sources may lag
// behind a change of policy. Where nothing changed the world is the same pointer as before.
//
// It costs what the pools and services touched hold, and, if any, a copy of the lists of pointers to them.
func (w *Writer) Commit(facts []Fact) (*World, Delta) {
	c := begin(w.Current())
	for _, f := range facts {
		c.apply(f)
	}
	if delta := c.finish(); !delta.Empty() {
		w.current = c.next
	}
	return w.Current(), c.delta
}

// commit is one Commit under way: a copy of the world whose containers are copied when first written to.
type commit struct {
	next  *World
	delta Delta

	pools    map[PoolKey]bool              // for delta.Pools
	services map[policies.ServiceName]bool // for delta.Services

	// What next does not share with the old world, and so may be written to.
	ownsViewpoints, ownsPools, ownsTraffic, ownsRoundTrips, ownsAccelerators bool
	ownedPools                                                               map[*Pool]bool
	ownedTraffic                                                             map[*Traffic]bool
}

func begin(old *World) *commit {
	next := *old
	return &commit{
		next: &next, pools: map[PoolKey]bool{}, services: map[policies.ServiceName]bool{},
		ownedPools: map[*Pool]bool{}, ownedTraffic: map[*Traffic]bool{},
	}
}

func (c *commit) apply(f Fact) {
	switch f := f.(type) {
	case PoliciesLoaded:
		c.loadPolicies(f.Set)
	case ViewpointSeen:
		c.seeViewpoint(f.Viewpoint)
	case PoolFound:
		c.findPool(f)
	case AcceleratorsCounted:
		c.countAccelerators(f)
	case EndpointJudged:
		c.changeEndpoint(f.Endpoint, func(e *Endpoint) { e.Health = f.Health })
	case EndpointMeasured:
		c.changeEndpoint(f.Endpoint, func(e *Endpoint) { e.Load = f.Load })
	case PoolSaid:
		c.notePoolSaid(f)
	case PoolServed:
		c.servePool(f)
	case DemandSeen:
		c.seeDemand(f)
	case RoundTripMeasured:
		c.measureRoundTrip(f)
	case SharesPublished:
		c.publishShares(f)
	case TimeAdvanced:
		if f.Now.After(c.next.now) {
			c.next.now, c.delta.Time = f.Now, true
		}
	}
}

func (c *commit) finish() Delta {
	c.delta.Pools = slices.SortedFunc(maps.Keys(c.pools), PoolKey.Compare)
	c.delta.Services = slices.Sorted(maps.Keys(c.services))
	slices.Sort(c.delta.Viewpoints)
	return c.delta
}

// changeEndpoint replaces the pool of an endpoint by one in which change has been made; a change that leaves the
// endpoint equal replaces nothing.
func (c *commit) changeEndpoint(key EndpointKey, change func(*Endpoint)) {
	place, ok := slices.BinarySearchFunc(c.next.pools, key.Pool, comparePool)
	if !ok {
		return
	}
	i, ok := c.next.pools[place].find(key.Address)
	if !ok {
		return
	}
	before := c.next.pools[place].Endpoints[i]
	after := before
	change(&after)
	if after == before {
		return
	}
	c.ownPool(place).Endpoints[i] = after
	if after.forPlans() == before.forPlans() {
		c.delta.Refreshed = true
	} else {
		c.pools[key.Pool] = true
	}
}

// forPlans is the endpoint without what only the judging of health remembers.
func (e Endpoint) forPlans() Endpoint {
	measured := !e.Load.At.IsZero()
	e.Health = Health{Verdict: e.Health.Verdict}
	e.Load = Load{Running: e.Load.Running, Waiting: e.Load.Waiting, KVCacheUse: e.Load.KVCacheUse, Stale: e.Load.Stale || !measured}
	return e
}

// servePool keeps the newest time.
func (c *commit) servePool(f PoolServed) {
	place, ok := slices.BinarySearchFunc(c.next.pools, f.Pool, comparePool)
	if !ok || !f.At.After(c.next.pools[place].ServedAt) {
		return
	}
	c.ownPool(place).ServedAt = f.At
	c.delta.Refreshed = true
}

// notePoolSaid keeps the newest.
func (c *commit) notePoolSaid(f PoolSaid) {
	place, ok := slices.BinarySearchFunc(c.next.pools, f.Pool, comparePool)
	if !ok || !f.Load.At.After(c.next.pools[place].Said.At) {
		return
	}
	c.ownPool(place).Said = f.Load
	c.delta.Refreshed = true
}

// ownPool is a pool, made writable: copied once a commit.
func (c *commit) ownPool(place int) *Pool {
	if p := c.next.pools[place]; c.ownedPools[p] {
		return p
	}
	p := c.next.pools[place].clone()
	c.replacePool(place, p)
	return p
}

// replacePool puts a pool that may still be written to in the place of another.
func (c *commit) replacePool(place int, p *Pool) {
	if !c.ownsPools {
		c.next.pools, c.ownsPools = slices.Clone(c.next.pools), true
	}
	c.next.pools[place], c.ownedPools[p] = p, true
}

func (c *commit) seeViewpoint(v Viewpoint) {
	id := v.ID()
	i, ok := slices.BinarySearchFunc(c.next.viewpoints, id, compareViewpoint)
	if ok {
		return
	}
	if !c.ownsViewpoints {
		c.next.viewpoints, c.ownsViewpoints = slices.Clone(c.next.viewpoints), true
	}
	c.next.viewpoints = slices.Insert(c.next.viewpoints, i, v)
	c.delta.Viewpoints = append(c.delta.Viewpoints, id)
}

// measureRoundTrip keeps the newest measurement; one that is not positive is none.
func (c *commit) measureRoundTrip(f RoundTripMeasured) {
	pair := pairOf(f.From, f.To)
	if pair.a == pair.b || f.RTT <= 0 || !c.next.hasRegion(pair.a) || !c.next.hasRegion(pair.b) {
		return
	}
	before := c.next.measured()[pair]
	after := roundTrip{f.RTT, f.At}
	if after == before || after.at.Before(before.at) {
		return
	}
	if !c.ownsRoundTrips {
		c.next.roundTrips, c.ownsRoundTrips = &RoundTrips{cloneMap(c.next.measured())}, true
	}
	c.next.roundTrips.measured[pair] = after
	if after.rtt == before.rtt {
		c.delta.Refreshed = true
	} else {
		c.delta.RoundTrips = true
	}
}

// find searches the endpoint with an address.
func (p *Pool) find(address netip.AddrPort) (int, bool) {
	return slices.BinarySearchFunc(p.Endpoints, address, func(e Endpoint, a netip.AddrPort) int { return e.Address.Compare(a) })
}

func (p *Pool) clone() *Pool {
	copied := *p
	copied.Endpoints = slices.Clone(p.Endpoints)
	return &copied
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}
