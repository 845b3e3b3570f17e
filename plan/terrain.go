package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// terrain is what the planning of all services has in common: who asks from where, which clusters there are, and how
// far and how reachable they are. It is immutable; a new one is made only when something in it changed.
type terrain struct {
	set        *policies.Set
	viewpoints []world.Viewpoint
	roundTrips *world.RoundTrips
	// clusters stand for those of Set.Clusters, in that order.
	clusters []site
	// origins has one entry for each viewpoint.
	origins []origin
}

// site is a cluster as planning sees it.
type site struct {
	name   policies.ClusterName
	region int // by place in Set.Regions
	drain  bool
	// began is when the draining did, and over how long it takes.
	began time.Time
	over  time.Duration
}

// origin is what a viewpoint has to do with each cluster, by place in clusters.
type origin struct {
	id        world.ViewpointID
	distances []distance
}

// distance is how far a cluster is from a viewpoint.
type distance struct {
	rtt time.Duration
	// cost is what the flow pays for the distance.
	cost int64
	// unreachable says that the cluster has gateways, and the viewpoint no identity to reach them with.
	unreachable bool
}

// newTerrain makes the terrain of a world, or gives old back where it is the same.
func newTerrain(w *world.World, old *terrain) *terrain {
	t := &terrain{set: w.Policies(), viewpoints: w.Viewpoints(), roundTrips: w.RoundTrips()}
	if old != nil && old.set == t.set && old.roundTrips == t.roundTrips && slices.Equal(old.viewpoints, t.viewpoints) {
		return old
	}
	between := roundTrips(w)
	for i := range t.set.Clusters {
		c := &t.set.Clusters[i]
		t.clusters = append(t.clusters, site{c.Metadata.Name, t.regionOf(c.Spec.Region), c.Spec.Drain, w.DrainBegan(c.Metadata.Name), c.Spec.DrainOver.Std()})
	}
	for _, v := range t.viewpoints {
		t.origins = append(t.origins, t.origin(v, between))
	}
	return t
}

// roundTrips are those between all regions of the policies, row by row. Both directions are the same.
func roundTrips(w *world.World) []time.Duration {
	regions := w.Policies().Regions
	n := len(regions)
	all := make([]time.Duration, n*n)
	for i := range n {
		for j := range i {
			rtt, _, _ := w.RoundTrip(regions[i].Metadata.Name, regions[j].Metadata.Name)
			all[i*n+j], all[j*n+i] = rtt, rtt
		}
	}
	return all
}

// regionOf is a region's place in Set.Regions; -1 where the policies name no such region.
func (t *terrain) regionOf(name policies.RegionName) int {
	return slices.IndexFunc(t.set.Regions, func(r policies.Region) bool { return r.Metadata.Name == name })
}

// find is a cluster's place; ok is false where the policies name no such cluster.
func (t *terrain) find(name policies.ClusterName) (i int, ok bool) {
	return slices.BinarySearchFunc(t.clusters, name, func(s site, n policies.ClusterName) int { return cmp.Compare(s.name, n) })
}

// origin measures the clusters from a viewpoint. Where a cluster is, its policy says, not the proxy. From a place that
// no policy knows all clusters are equally far.
func (t *terrain) origin(v world.Viewpoint, between []time.Duration) origin {
	here := t.regionOf(v.Region)
	if c, ok := t.set.Cluster(v.Cluster); ok {
		here = t.regionOf(c.Spec.Region)
	}
	gateway, ok := t.set.GatewayFor(v.Role, v.Region, v.Cluster)
	crosses := ok && gateway.Spec.EastWest != nil
	o := origin{id: v.ID(), distances: make([]distance, len(t.clusters))}
	for i, c := range t.clusters {
		var d distance
		own := c.name == v.Cluster
		if here >= 0 {
			d.rtt = between[here*len(t.set.Regions)+c.region]
		}
		d.cost = nearness(d.rtt, own)
		d.unreachable = !own && !crosses && len(t.set.Clusters[i].Spec.Gateways) > 0
		o.distances[i] = d
	}
	return o
}
