package plan

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/plan/flow"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// question is all that planning one service depends on, but for the time: the key under which a Memo holds the answer.
// Demand and shares are of every viewpoint and class: that of viewpoint v and class c is at v*len(classes)+c.
type question struct {
	terrain *terrain
	classes []*class
	traffic *policies.TrafficSpec
	// pools are by name of their cluster.
	pools []pool
	// demand is in units.
	demand  []int64
	inForce []world.SharesOf
}

// unit is how finely requests are counted: demand and capacity are in thousandths of a request.
const unit = 1000

// pool is a pool as planning sees it.
type pool struct {
	cluster int // by place in terrain.clusters
	grade   grade
	// total endpoints, of which healthy answer, with slots.
	total, healthy, slots int
	// capacity is how much of our demand may be planned for, in units.
	capacity int64
	// growth is how much more that would be with the replicas that fit and are not there, in units.
	growth int64
}

// grade says how well a pool can serve, best first.
type grade uint8

const (
	fit             grade = iota // it answers
	fitButDraining               // it answers, but is being emptied
	unknown                      // nothing fresh is known of it
	unknownDraining              // nor is it wanted
	unfit                        // nothing in it answers
	unfitDraining
)

// draining says whether the pool's cluster is being emptied.
func (g grade) draining() bool { return g%2 == 1 }

// usable says whether the pool may be able to serve at all.
func (g grade) usable() bool { return g < unfit }

func gradeOf(h world.Headroom, draining bool) grade {
	g := unfit
	switch {
	case h.Healthy > 0:
		g = fit
	case h.Unknown > 0:
		g = unknown
	}
	if draining {
		g++
	}
	return g
}

// equal says whether two questions have the same answer at the same time.
func (q *question) equal(o *question) bool {
	return q.terrain == o.terrain && q.traffic == o.traffic && slices.Equal(q.pools, o.pools) && slices.Equal(q.demand, o.demand) &&
		slices.EqualFunc(q.inForce, o.inForce, func(a, b world.SharesOf) bool {
			return a.At.Equal(b.At) && slices.Equal(a.Shares, b.Shares)
		})
}

// ask gathers a service's question from the world.
func ask(w *world.World, t *terrain, service *policies.Service, traffic *policies.TrafficSpec, classes []*class) *question {
	q := &question{terrain: t, classes: classes, traffic: traffic}
	name := service.Metadata.Name
	parts := busy(w.DemandParts(name), t)
	q.demand = demandOf(parts, t, classes)
	q.inForce = make([]world.SharesOf, 0, len(q.demand))
	for _, o := range t.origins {
		for _, c := range classes {
			shares, _ := w.SharesInForce(world.DemandKey{Viewpoint: o.id, Service: name, Class: c.id})
			q.inForce = append(q.inForce, shares)
		}
	}
	running := q.measure(w.PoolsOf(name), service.Spec.Capacity)
	q.leaveRoom(running, parts)
	return q
}

// part is how many slots requests of one key keep busy in one cluster, in units.
type part struct {
	key     world.DemandKey
	cluster policies.ClusterName
	slots   int64
}

// busy turns requests in flight, as a viewpoint sees them, into slots that they keep busy. By Little's law the requests
// that are on their way at any time are as many as begin in a round trip; they are in flight and take no slot.
func busy(all []world.DemandPart, t *terrain) []part {
	parts := make([]part, len(all))
	for i, p := range all {
		travelling := p.Demand.RequestsPerSecond * t.roundTrip(p.Key.Viewpoint, p.Cluster).Seconds()
		parts[i] = part{p.Key, p.Cluster, inUnits(p.Demand.InFlight - travelling)}
	}
	return parts
}

// roundTrip is how far a cluster is from a viewpoint; 0 where either is not known.
func (t *terrain) roundTrip(from world.ViewpointID, to policies.ClusterName) time.Duration {
	v, okV := slices.BinarySearchFunc(t.origins, from, func(o origin, id world.ViewpointID) int { return cmp.Compare(o.id, id) })
	c, okC := t.find(to)
	if !okV || !okC {
		return 0
	}
	return t.origins[v].distances[c].rtt
}

// demandOf sums demand up by viewpoint and class. All three inputs are sorted; what is of a viewpoint or class that is
// not known is left out.
func demandOf(all []part, t *terrain, classes []*class) []int64 {
	demand := make([]int64, len(t.origins)*len(classes))
	for c, class := range classes {
		for len(all) > 0 && all[0].key.Class < class.id {
			all = all[1:]
		}
		v := 0
		for ; len(all) > 0 && all[0].key.Class == class.id; all = all[1:] {
			for v < len(t.origins) && t.origins[v].id < all[0].key.Viewpoint {
				v++
			}
			if v < len(t.origins) && t.origins[v].id == all[0].key.Viewpoint {
				demand[v*len(classes)+c] += all[0].slots
			}
		}
	}
	return demand
}

// inUnits guards against what no demand can be.
func inUnits(requests float64) int64 {
	const most = 1e9
	if !(requests > 0) {
		return 0
	}
	return int64(math.Round(min(requests, most) * unit))
}

// measure fills in the pools, and gives back what runs in each, in units.
func (q *question) measure(pools []*world.Pool, capacity policies.Capacity) (running []int64) {
	for _, p := range pools {
		h := p.Headroom(capacity)
		cluster, _ := q.terrain.find(p.Key.Cluster)
		now := pool{
			cluster: cluster, grade: gradeOf(h, q.terrain.clusters[cluster].drain),
			total: h.Total, healthy: h.Healthy, slots: h.Slots,
		}
		if now.grade == fit {
			now.growth = q.planned(min(p.Fit(), mostReplicas) * int64(capacity.SlotsPerEndpoint))
		}
		q.pools = append(q.pools, now)
		running = append(running, int64(h.Running)*unit)
	}
	return running
}

// mostReplicas bounds how many more replicas are counted on, so that sums can't overflow.
const mostReplicas = 1 << 20

// planned is the part of some slots that may be planned for, in units.
func (q *question) planned(slots int64) int64 {
	return min(max(0, slots)*unit*int64(q.traffic.Spill.TargetUtilization)/100, flow.MaxCapacity)
}

// leaveRoom sets each pool's capacity: the planned part of its slots, less what others than we keep busy there.
//
// What servers run clearly beyond all the demand known of the service is of others, and is held against the pools that
// run more than we sent there. Servers' gauges trail demand by seconds, so what has left one pool for another must not
// look like somebody else's load: hence the sum over all pools, to which moving makes no difference; and the tolerance,
// for the time in which demand falls. Queues are left out: a pool in which all slots run is full without. excess is
// what runs in each pool, and is used up.
func (q *question) leaveRoom(excess []int64, parts []part) {
	const tolerance = 1.25
	var running, sent, beyond int64
	for _, load := range excess {
		running += load
	}
	for _, part := range parts {
		sent += part.slots
		if i, ok := q.poolIn(part.cluster); ok {
			excess[i] -= part.slots
		}
	}
	foreign := float64(running) - tolerance*float64(sent)
	for i := range excess {
		excess[i] = max(0, excess[i])
		beyond += excess[i]
	}
	for i := range q.pools {
		p := &q.pools[i]
		p.capacity = q.planned(int64(p.slots))
		if foreign > 0 && beyond > 0 {
			p.capacity -= coarse(int64(float64(excess[i])*foreign/float64(beyond)), p.slots)
		}
		p.capacity = min(max(0, p.capacity), flow.MaxCapacity)
	}
}

// coarse rounds down to twentieths of a pool, so that a gauge that moves a little makes no new question.
func coarse(load int64, slots int) int64 {
	step := max(unit, int64(slots)*unit/20)
	return load - load%step
}

// poolIn is the place of a cluster's pool; ok is false where the service has none there.
func (q *question) poolIn(name policies.ClusterName) (i int, ok bool) {
	cluster, _ := q.terrain.find(name)
	i, ok = slices.BinarySearchFunc(q.pools, cluster, func(p pool, c int) int { return cmp.Compare(p.cluster, c) })
	return i, ok && q.terrain.clusters[cluster].name == name
}
