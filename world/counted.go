package world

import (
	"reflect"

	"github.com/meridian-mesh/meridian/policies"
)

// countAccelerators replaces what is known of a cluster's accelerators.
func (c *commit) countAccelerators(f AcceleratorsCounted) {
	if !c.next.counts(f.Cluster) {
		return
	}
	if before := c.next.accelerators[f.Cluster]; !reflect.DeepEqual(before, f.Accelerators) {
		c.putAccelerators(f.Cluster, f.Accelerators)
		c.delta.Accelerators = true
	}
	replicas := map[policies.ServiceName]*PoolReplicas{}
	for i := range f.Pools {
		replicas[f.Pools[i].Service] = &f.Pools[i]
	}
	for place, p := range c.next.pools {
		now := replicas[p.Key.Service]
		if p.Key.Cluster != f.Cluster || !c.next.isRead(p.Key) || reflect.DeepEqual(p.Replicas, now) {
			continue
		}
		if p.Fit() != now.fit() {
			c.pools[p.Key] = true
		}
		c.ownPool(place).Replicas = now
		c.delta.Accelerators = true
	}
}

func (c *commit) putAccelerators(cluster policies.ClusterName, now *Accelerators) {
	if !c.ownsAccelerators {
		c.next.accelerators, c.ownsAccelerators = cloneMap(c.next.accelerators), true
	}
	if now == nil {
		delete(c.next.accelerators, cluster)
	} else {
		c.next.accelerators[cluster] = now
	}
}

// Fit is how many more replicas of the pool's servers would fit; 0 where that is not known.
func (p *Pool) Fit() int64 { return p.Replicas.fit() }

func (r *PoolReplicas) fit() int64 {
	if r == nil {
		return 0
	}
	return r.Fit
}

// acceleratorsOf are those of clusters that a set still has counted.
func acceleratorsOf(set *policies.Set, before *World) map[policies.ClusterName]*Accelerators {
	kept := map[policies.ClusterName]*Accelerators{}
	for cluster, a := range before.accelerators {
		if countedBy(set, cluster) {
			kept[cluster] = a
		}
	}
	return kept
}

// counts says whether the policies in force have a cluster's accelerators counted.
func (w *World) counts(cluster policies.ClusterName) bool {
	return w.set != nil && countedBy(w.set, cluster)
}

func countedBy(set *policies.Set, cluster policies.ClusterName) bool {
	c, ok := set.Cluster(cluster)
	return ok && c.Spec.Kubernetes != nil && c.Spec.Kubernetes.Accelerators.Counted()
}
