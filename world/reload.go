package world

import (
	"maps"
	"slices"

	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/policies"
)

// loadPolicies puts a set in force: what is known of endpoints, services, classes and regions that stay is carried
// over, and what is known of those that are gone is dropped.
func (c *commit) loadPolicies(set *policies.Set) {
	if set == nil || c.next.set == set || c.next.set != nil && set.Hash != "" && c.next.set.Hash == set.Hash {
		return
	}
	before := *c.next
	c.next.set = set
	c.next.places = placesOf(set)
	c.next.pools = poolsOf(set, &before)
	c.next.traffic = trafficOf(c.next, &before)
	c.next.roundTrips = &RoundTrips{cloneMap(before.measured())}
	maps.DeleteFunc(c.next.measured(), func(k regionPair, _ roundTrip) bool {
		return !c.next.hasRegion(k.a) || !c.next.hasRegion(k.b)
	})
	c.ownsPools, c.ownsTraffic, c.ownsRoundTrips = true, true, true
	c.delta.Policies = true
}

func placesOf(set *policies.Set) map[policies.RegionName]geo.Place {
	places := make(map[policies.RegionName]geo.Place, len(set.Regions))
	for _, r := range set.Regions {
		places[r.Metadata.Name] = r.Spec.Place
	}
	return places
}

// poolsOf makes the pools that a set names. A pool that holds the same endpoints as before is the same pointer.
func poolsOf(set *policies.Set, before *World) []*Pool {
	var pools []*Pool
	for _, s := range set.Services {
		for _, p := range s.Spec.Pools {
			key := PoolKey{s.Metadata.Name, p.Cluster}
			pools = append(pools, poolOf(key, p.Endpoints, before.Pool(key)))
		}
	}
	slices.SortFunc(pools, func(a, b *Pool) int { return a.Key.Compare(b.Key) })
	return pools
}

func poolOf(key PoolKey, addresses []policies.Address, before *Pool) *Pool {
	pool := &Pool{Key: key, Endpoints: make([]Endpoint, len(addresses))}
	for i, a := range addresses {
		pool.Endpoints[i].Address = a.AddrPort()
	}
	slices.SortFunc(pool.Endpoints, func(a, b Endpoint) int { return a.Address.Compare(b.Address) })
	if before == nil {
		return pool
	}
	pool.ServedAt = before.ServedAt
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

// trafficOf makes the traffic of the services that the policies of next name. Services without a change of classes
// keep their pointer.
func trafficOf(next, before *World) []*Traffic {
	all := make([]*Traffic, 0, len(next.set.Services))
	for _, s := range next.set.Services {
		t := before.trafficFor(s.Metadata.Name)
		switch {
		case t == nil:
			t = &Traffic{service: s.Metadata.Name}
		case !t.knownTo(next):
			t = t.clone()
			t.demand = slices.DeleteFunc(t.demand, func(d DemandOf) bool { return !next.knows(d.Key) })
			t.parts = slices.DeleteFunc(t.parts, func(p DemandPart) bool { return !next.knows(p.Key) })
			t.shares = slices.DeleteFunc(t.shares, func(f sharesFor) bool { return !next.knows(f.key) })
		}
		all = append(all, t)
	}
	return all
}

// knownTo says whether the world's policies name every class in t.
func (t *Traffic) knownTo(w *World) bool {
	return !slices.ContainsFunc(t.parts, func(p DemandPart) bool { return !w.knows(p.Key) }) &&
		!slices.ContainsFunc(t.shares, func(f sharesFor) bool { return !w.knows(f.key) })
}
