package world

import (
	"slices"

	"github.com/meridian-mesh/meridian/policies"
)

// readsFrom says whether the policies in force read a pool from the same object.
func (w *World) readsFrom(key PoolKey, from *policies.PoolSource) bool {
	s, ok := w.set.Service(key.Service)
	if !ok {
		return false
	}
	i := slices.IndexFunc(s.Spec.Pools, func(p policies.Pool) bool { return p.Cluster == key.Cluster })
	return i >= 0 && s.Spec.Pools[i].From != nil && *s.Spec.Pools[i].From == *from
}

// findPool replaces the endpoints of a pool that is read from its cluster.
func (c *commit) findPool(f PoolFound) {
	place, ok := slices.BinarySearchFunc(c.next.pools, f.Pool, comparePool)
	if !ok || !c.next.isRead(f.Pool) {
		return
	}
	before := c.next.pools[place]
	pool := &Pool{Key: f.Pool, Found: true, Unprobed: before.Unprobed, Replicas: before.Replicas, Endpoints: make([]Endpoint, len(f.Endpoints))}
	for i, e := range f.Endpoints {
		pool.Endpoints[i] = Endpoint{Address: e.Address, Condition: e.Condition, Zone: e.Zone}
	}
	if pool = pool.carryOver(before); pool == before {
		return
	}
	c.pools[f.Pool] = true
	if !before.Found || !slices.EqualFunc(before.Endpoints, pool.Endpoints, func(a, b Endpoint) bool { return a.Address == b.Address }) {
		c.delta.Members = true
	}
	c.replacePool(place, pool)
}

// isRead says whether a pool is read from its cluster.
func (w *World) isRead(key PoolKey) bool {
	s, ok := w.set.Service(key.Service)
	return ok && slices.ContainsFunc(s.Spec.Pools, func(p policies.Pool) bool { return p.Cluster == key.Cluster && p.From != nil })
}
