package world

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/policies"
)

// Delta says what a Commit changed, so that those downstream look only there. Its slices are sorted and hold no value
// twice.
type Delta struct {
	// Policies says that another policy set is in force: everything may have changed.
	Policies bool
	// Viewpoints are those seen for the first time.
	Viewpoints []ViewpointID
	// Pools are those whose pointer was replaced.
	Pools []PoolKey
	// Services are those whose demand or shares in force changed.
	Services []policies.ServiceName
	// RoundTrips says that a measured round trip changed.
	RoundTrips bool
	// Time says that the clock moved.
	Time bool
}

// Empty says that nothing changed at all.
func (d Delta) Empty() bool {
	return !d.Policies && !d.Time && d.OnlyTime()
}

// OnlyTime says that nothing changed but, perhaps, the time.
func (d Delta) OnlyTime() bool {
	return !d.Policies && !d.RoundTrips && len(d.Viewpoints) == 0 && len(d.Pools) == 0 && len(d.Services) == 0
}

// Writer moves the world on. It has one owner; a World that it returned is never changed again. The zero value is
// ready, with an empty world.
type Writer struct {
	current *World
}

// Current is the world as of the last Commit.
func (w *Writer) Current() *World {
	if w.current == nil {
		return &World{}
	}
	return w.current
}

// Commit folds facts into a new world, in order, so that the last of two facts about one thing holds. Facts about
// pools, endpoints or regions that the policies do not name are dropped: their sources may lag behind a change of
// policy. Where nothing changed the world is the same pointer as before.
func (w *Writer) Commit(facts []Fact) (*World, Delta) {
	c := begin(w.Current())
	for _, f := range facts {
		c.apply(f)
	}
	next, delta := c.finish()
	w.current = next
	return next, delta
}

// commit is one Commit under way: a copy of the world whose containers are copied when first written to.
type commit struct {
	old   *World
	next  World
	delta Delta

	pools                                  map[PoolKey]*Pool // replaced in this commit
	services                               map[policies.ServiceName]bool
	ownsDemand, ownsShares, ownsRoundTrips bool
}

func begin(old *World) *commit {
	return &commit{old: old, next: *old, pools: map[PoolKey]*Pool{}, services: map[policies.ServiceName]bool{}}
}

func (c *commit) apply(f Fact) {
	switch f := f.(type) {
	case PoliciesLoaded:
		c.loadPolicies(f.Set)
	case ViewpointSeen:
		c.seeViewpoint(f.Viewpoint)
	case EndpointJudged:
		c.changeEndpoint(f.Endpoint, func(e *Endpoint) { e.Health = f.Health })
	case EndpointMeasured:
		c.changeEndpoint(f.Endpoint, func(e *Endpoint) { e.Load = f.Load })
	case DemandSeen:
		c.seeDemand(f)
	case RoundTripMeasured:
		c.measureRoundTrip(f)
	case SharesPublished:
		c.publishShares(f)
	case TimeAdvanced:
		if f.Now.After(c.next.now) {
			c.next.now = f.Now
			c.delta.Time = true
		}
	}
}

// finish gives the old pointer back where nothing changed.
func (c *commit) finish() (*World, Delta) {
	for key := range c.pools {
		c.delta.Pools = append(c.delta.Pools, key)
	}
	slices.SortFunc(c.delta.Pools, PoolKey.Compare)
	c.delta.Services = slices.Sorted(maps.Keys(c.services))
	slices.Sort(c.delta.Viewpoints)
	if c.delta.Empty() {
		return c.old, c.delta
	}
	if len(c.pools) > 0 {
		c.next.pools = slices.Clone(c.next.pools)
		for i, p := range c.next.pools {
			if replaced, ok := c.pools[p.Key]; ok {
				c.next.pools[i] = replaced
			}
		}
	}
	return &c.next, c.delta
}

// changeEndpoint replaces the pool of an endpoint by one in which change has been made; a change that leaves the
// endpoint equal replaces nothing.
func (c *commit) changeEndpoint(key EndpointKey, change func(*Endpoint)) {
	pool, mine := c.pools[key.Pool]
	if !mine {
		pool = c.next.Pool(key.Pool)
	}
	if pool == nil {
		return
	}
	i, ok := pool.find(key.Address)
	if !ok {
		return
	}
	changed := pool.Endpoints[i]
	change(&changed)
	if changed == pool.Endpoints[i] {
		return
	}
	if !mine {
		pool = &Pool{Key: pool.Key, Endpoints: slices.Clone(pool.Endpoints)}
		c.pools[key.Pool] = pool
	}
	pool.Endpoints[i] = changed
}

func (c *commit) seeViewpoint(v Viewpoint) {
	id := v.ID()
	i, ok := slices.BinarySearchFunc(c.next.viewpoints, id, compareViewpoint)
	if ok {
		return
	}
	c.next.viewpoints = slices.Insert(slices.Clone(c.next.viewpoints), i, v)
	c.delta.Viewpoints = append(c.delta.Viewpoints, id)
}

func (c *commit) seeDemand(f DemandSeen) {
	if !c.next.hasService(f.Key.Service) {
		return
	}
	i, ok := slices.BinarySearchFunc(c.next.demand, f.Key, compareDemand)
	if ok && c.next.demand[i].Demand == f.Demand {
		return
	}
	if !c.ownsDemand {
		c.next.demand, c.ownsDemand = slices.Clone(c.next.demand), true
	}
	if ok {
		c.next.demand[i].Demand = f.Demand
	} else {
		c.next.demand = slices.Insert(c.next.demand, i, DemandOf{f.Key, f.Demand})
	}
	c.services[f.Key.Service] = true
}

func (c *commit) measureRoundTrip(f RoundTripMeasured) {
	pair := pairOf(f.From, f.To)
	if _, ok := c.next.places[pair.a]; !ok || pair.a == pair.b {
		return
	}
	if old, ok := c.next.roundTrips[pair]; ok && old == f.RTT {
		return
	}
	if !c.ownsRoundTrips {
		c.next.roundTrips, c.ownsRoundTrips = cloneMap(c.next.roundTrips), true
	}
	c.next.roundTrips[pair] = f.RTT
	c.delta.RoundTrips = true
}

func (c *commit) publishShares(f SharesPublished) {
	if !c.next.hasService(f.Key.Service) {
		return
	}
	if old, ok := c.next.shares[f.Key]; ok && slices.Equal(old.Shares, f.Shares) && old.At.Equal(f.At) {
		return
	}
	if !c.ownsShares {
		c.next.shares, c.ownsShares = cloneMap(c.next.shares), true
	}
	c.next.shares[f.Key] = SharesOf{Shares: slices.Clone(f.Shares), At: f.At}
	c.services[f.Key.Service] = true
}

// loadPolicies makes the pools anew from the policies, carrying over what is known of endpoints that stay, and drops
// what is known of services and regions that are gone.
func (c *commit) loadPolicies(set *policies.Set) {
	if set == nil || (c.next.set != nil && c.next.set.Hash == set.Hash) {
		return
	}
	before := c.next
	before.pools = c.poolsNow()
	c.pools = map[PoolKey]*Pool{}
	c.next.set = set
	c.next.places = make(map[policies.RegionName]geo.Place, len(set.Regions))
	for _, r := range set.Regions {
		c.next.places[r.Metadata.Name] = r.Spec.Place
	}
	c.next.pools = poolsFrom(set, &before)
	c.next.demand = slices.DeleteFunc(slices.Clone(before.demand), func(d DemandOf) bool { return !c.next.hasService(d.Key.Service) })
	c.next.shares = cloneMap(before.shares)
	maps.DeleteFunc(c.next.shares, func(k DemandKey, _ SharesOf) bool { return !c.next.hasService(k.Service) })
	c.ownsDemand, c.ownsShares = true, true
	c.delta.Policies = true
}

// poolsNow are the pools with the replacements of this commit in place.
func (c *commit) poolsNow() []*Pool {
	pools := slices.Clone(c.next.pools)
	for i, p := range pools {
		if replaced, ok := c.pools[p.Key]; ok {
			pools[i] = replaced
		}
	}
	return pools
}

// poolsFrom makes the pools that a set names. A pool that holds the same endpoints as before is the same pointer.
func poolsFrom(set *policies.Set, before *World) []*Pool {
	var pools []*Pool
	for _, s := range set.Services {
		for _, p := range s.Spec.Pools {
			key := PoolKey{s.Metadata.Name, p.Cluster}
			pools = append(pools, poolFrom(key, p.Endpoints, before.Pool(key)))
		}
	}
	slices.SortFunc(pools, func(a, b *Pool) int { return a.Key.Compare(b.Key) })
	return pools
}

func poolFrom(key PoolKey, addresses []policies.Address, before *Pool) *Pool {
	pool := &Pool{Key: key, Endpoints: make([]Endpoint, len(addresses))}
	for i, a := range addresses {
		pool.Endpoints[i].Address = a.AddrPort()
	}
	slices.SortFunc(pool.Endpoints, func(a, b Endpoint) int { return a.Address.Compare(b.Address) })
	if before == nil {
		return pool
	}
	for i := range pool.Endpoints {
		if j, ok := before.find(pool.Endpoints[i].Address); ok {
			pool.Endpoints[i] = before.Endpoints[j]
		}
	}
	if slices.Equal(pool.Endpoints, before.Endpoints) {
		return before
	}
	return pool
}

// hasService says whether the policies in force name a service.
func (w *World) hasService(name policies.ServiceName) bool {
	if w.set == nil {
		return false
	}
	_, ok := w.set.Service(name)
	return ok
}

// find searches the endpoint with an address.
func (p *Pool) find(address netip.AddrPort) (int, bool) {
	return slices.BinarySearchFunc(p.Endpoints, address, func(e Endpoint, a netip.AddrPort) int { return e.Address.Compare(a) })
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}

// Merge is what two commits, one after the other, changed together.
func (d Delta) Merge(later Delta) Delta {
	return Delta{
		Policies:   d.Policies || later.Policies,
		Viewpoints: union(d.Viewpoints, later.Viewpoints),
		Pools:      unionFunc(d.Pools, later.Pools, PoolKey.Compare),
		Services:   union(d.Services, later.Services),
		RoundTrips: d.RoundTrips || later.RoundTrips,
		Time:       d.Time || later.Time,
	}
}

func union[T cmp.Ordered](a, b []T) []T { return unionFunc(a, b, cmp.Compare[T]) }

func unionFunc[T comparable](a, b []T, compare func(T, T) int) []T {
	all := slices.SortedFunc(slices.Values(slices.Concat(a, b)), compare)
	return slices.Compact(all)
}
