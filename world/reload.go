package world

import (
	"maps"
	"slices"
	"time"

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
	c.next.drains = drainsOf(set, &before)
	c.next.accelerators = acceleratorsOf(set, &before)
	c.next.roundTrips = &RoundTrips{cloneMap(before.measured())}
	maps.DeleteFunc(c.next.measured(), func(k regionPair, _ roundTrip) bool {
		return !c.next.hasRegion(k.a) || !c.next.hasRegion(k.b)
	})
	c.ownsPools, c.ownsTraffic, c.ownsRoundTrips, c.ownsAccelerators = true, true, true, true
	c.delta.Policies = true
}

// drainsOf are when the draining of a set's clusters began: now, for those that were not being drained before.
func drainsOf(set *policies.Set, before *World) map[policies.ClusterName]time.Time {
	drains := map[policies.ClusterName]time.Time{}
	if before.set == nil {
		return drains
	}
	for i := range set.Clusters {
		name := set.Clusters[i].Metadata.Name
		was, ok := before.set.Cluster(name)
		switch {
		case !set.Clusters[i].Spec.Drain:
		case ok && !was.Spec.Drain:
			drains[name] = before.now
		case !before.drains[name].IsZero():
			drains[name] = before.drains[name]
		}
	}
	return drains
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
			pools = append(pools, poolOf(set, s.Metadata.Name, p, before))
		}
	}
	slices.SortFunc(pools, func(a, b *Pool) int { return a.Key.Compare(b.Key) })
	return pools
}

func poolOf(set *policies.Set, service policies.ServiceName, p policies.Pool, world *World) *Pool {
	key := PoolKey{service, p.Cluster}
	before := world.Pool(key)
	pool := &Pool{Key: key, Found: p.From == nil, Endpoints: make([]Endpoint, len(p.Endpoints))}
	for i, a := range p.Endpoints {
		pool.Endpoints[i].Address = a.AddrPort()
	}
	if c, ok := set.Cluster(p.Cluster); ok && p.From != nil && c.Spec.Kubernetes != nil {
		pool.Unprobed = c.Spec.Kubernetes.PodsUnreachable
	}
	if p.From != nil && before != nil && before.Found && world.readsFrom(key, p.From) {
		pool.Found, pool.Endpoints = true, slices.Clone(before.Endpoints)
		if countedBy(set, p.Cluster) {
			pool.Replicas = before.Replicas
		}
	}
	return pool.carryOver(before)
}

// carryOver takes over what is known of endpoints that stay. It returns before where that is the same.
func (p *Pool) carryOver(before *Pool) *Pool {
	slices.SortFunc(p.Endpoints, func(a, b Endpoint) int { return a.Address.Compare(b.Address) })
	if before == nil {
		return p
	}
	p.ServedAt, p.Said = before.ServedAt, before.Said
	for i := range p.Endpoints {
		if j, ok := before.find(p.Endpoints[i].Address); ok {
			p.Endpoints[i].Health, p.Endpoints[i].Load = before.Endpoints[j].Health, before.Endpoints[j].Load
		}
	}
	if p.Found == before.Found && p.Unprobed == before.Unprobed && p.Replicas == before.Replicas && slices.Equal(p.Endpoints, before.Endpoints) {
		return before
	}
	return p
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
