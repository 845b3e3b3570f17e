package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/plan/flow"
	"github.com/meridian-mesh/meridian/policies"
)

// candidate is one pool, seen from one viewpoint by one class.
type candidate struct {
	pool int // by place in question.pools
	rtt  time.Duration
	// cost is what the flow pays for a request: by how much the Traffic policy prefers others, then by distance.
	cost int64
	// preferred is the place of the region in the Traffic policy's list, from 1; 0 for the region that is nearest,
	// and regionsLast for regions in neither.
	preferred int32
	grade     grade
	bars      bars
}

// bars are what keeps requests from a candidate, whatever its health.
type bars uint8

const (
	barBoundary bars = 1 << iota // a residency rule's boundary leaves its region out
	barFailover                  // the Traffic policy does not fail over there
	barGateway                   // its gateways can't be crossed to
)

// regionsLast is after every region that a Traffic policy names.
const regionsLast = 1 << 8

// permitted says whether requests may go there at all.
func (c *candidate) permitted() bool { return c.bars == 0 }

// rank appends the candidates of viewpoint v for a class: those permitted, from the first that should serve on
// whatever their health, then those that are not, by name.
func (q *question) rank(into []candidate, v int, class *class) []candidate {
	begin := len(into)
	distances := q.terrain.origins[v].distances
	for i := range q.pools {
		p := &q.pools[i]
		d := &distances[p.cluster]
		c := candidate{pool: i, grade: p.grade, rtt: d.rtt, cost: d.cost}
		if class.forbidden[q.terrain.clusters[p.cluster].region] != nil {
			c.bars |= barBoundary
		}
		if d.unreachable {
			c.bars |= barGateway
		}
		into = append(into, c)
	}
	all := into[begin:]
	q.prefer(all)
	slices.SortFunc(all, compareCandidates)
	return into
}

// nearness is the cost of a distance: the round trip in microseconds and, so that of two clusters in one region the
// viewpoint's own is nearer, one step more for any other.
func nearness(rtt time.Duration, own bool) int64 {
	const farthest = flow.MaxCost / (2 * (regionsLast + 1))
	cost := 2 * min(rtt.Microseconds(), farthest/2-1)
	if !own {
		cost++
	}
	return cost
}

// prefer applies the Traffic policy's order of regions. The nearest permitted cluster's region comes first whether it
// is healthy or not: failover that is limited to some regions must not widen when the nearest fails.
func (q *question) prefer(all []candidate) {
	regions := q.traffic.Failover.Regions
	if len(regions) == 0 {
		return
	}
	home := -1
	for i := range all {
		if all[i].permitted() && (home < 0 || all[i].cost < all[home].cost) {
			home = i
		}
	}
	for i := range all {
		c := &all[i]
		region := q.regionName(c.pool)
		named := slices.Index(regions, region)
		switch {
		case home >= 0 && region == q.regionName(all[home].pool):
		case named >= 0:
			c.preferred = int32(min(named+1, regionsLast-1))
		default:
			c.preferred = regionsLast
			if q.traffic.Failover.Only {
				c.bars |= barFailover
			}
		}
	}
	for i := range all {
		all[i].cost += int64(all[i].preferred) * (flow.MaxCost / (regionsLast + 1))
	}
}

func (q *question) regionName(pool int) policies.RegionName {
	return q.terrain.set.Regions[q.terrain.clusters[q.pools[pool].cluster].region].Metadata.Name
}

// compareCandidates puts the permitted first, by cost; pools are in order of their clusters' names.
func compareCandidates(a, b candidate) int {
	switch {
	case a.permitted() && b.permitted():
		if a.cost != b.cost {
			return cmp.Compare(a.cost, b.cost)
		}
	case a.permitted():
		return -1
	case b.permitted():
		return 1
	}
	return cmp.Compare(a.pool, b.pool)
}
