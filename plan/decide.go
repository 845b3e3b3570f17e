package plan

import (
	"cmp"
	"slices"

	"github.com/meridian-mesh/meridian/policies"
)

// deciding is one decision under way. Its slices are the planner's, and used again for the next.
type deciding struct {
	q       *question
	class   *class
	ranked  []candidate
	serving []int    // places in ranked
	growing []bool   // by pool
	target  []uint32 // by pool
	shares  []uint32 // by pool

	places  []int // of ranked, in order of choices
	choices []Choice
	reasons []Reason
}

// decide turns the shares of a key into choices with their reasons. They are good until the next call.
func (p *planner) decide(key int, shares []uint32) []Choice {
	d := &p.deciding
	d.q, d.class, d.ranked, d.serving = p.q, p.q.classes[key%len(p.q.classes)], p.ranked(key), p.serving[key]
	d.target, d.shares, d.growing = p.row(key), shares, p.growing
	d.places, d.choices, d.reasons = d.places[:0], d.choices[:0], d.reasons[:0]
	for i := range d.ranked {
		d.places = append(d.places, i)
	}
	slices.SortStableFunc(d.places, d.compare)
	var priority uint32
	for _, i := range d.places {
		if c := d.choice(i); c.Role == Serving {
			priority = 1
		} else if c.Role == Standby {
			c.Priority = priority
			priority++
		}
	}
	return d.choices
}

// compare orders candidates: those that serve by share, those that stand by by how well they could serve, those
// refused; and each by rank.
func (d *deciding) compare(a, b int) int {
	x, y := &d.ranked[a], &d.ranked[b]
	switch role := d.role(a); {
	case role != d.role(b):
		return cmp.Compare(order(role), order(d.role(b)))
	case role == Serving:
		return cmp.Compare(d.shares[y.pool], d.shares[x.pool])
	case role == Standby:
		return cmp.Compare(x.grade, y.grade)
	}
	return 0
}

// order is the place of a role's choices in a decision.
func order(r Role) int { return slices.Index([]Role{Serving, Standby, Refused}, r) }

func (d *deciding) role(i int) Role {
	switch c := &d.ranked[i]; {
	case !c.permitted():
		return Refused
	case d.shares[c.pool] > 0:
		return Serving
	}
	return Standby
}

// choice appends the choice of a candidate.
func (d *deciding) choice(i int) *Choice {
	c := &d.ranked[i]
	begin := len(d.reasons)
	choice := Choice{Cluster: d.clusterOf(i), Region: d.q.regionName(c.pool), Role: d.role(i), Healthy: c.grade.usable(), RTT: c.rtt}
	switch choice.Role {
	case Serving:
		choice.Share = d.shares[c.pool]
		d.whyServing(i)
	case Standby:
		d.whyStandby(i)
	default:
		d.whyRefused(c)
	}
	choice.Reasons = d.reasons[begin:len(d.reasons):len(d.reasons)]
	d.choices = append(d.choices, choice)
	return &d.choices[len(d.choices)-1]
}

func (d *deciding) clusterOf(i int) policies.ClusterName {
	return d.q.terrain.clusters[d.q.pools[d.ranked[i].pool].cluster].name
}

func (d *deciding) because(r Reason) { d.reasons = append(d.reasons, r) }

func (d *deciding) whyServing(i int) {
	c := &d.ranked[i]
	if c.grade != fit {
		d.because(d.condition(i))
	}
	if !slices.Contains(d.serving, i) {
		return // it is being left
	}
	if i != d.serving[0] && d.target[c.pool] > 0 {
		full := d.serving[0]
		d.because(Reason{Code: Spill, RTT: c.rtt, Cluster: d.clusterOf(full), Slots: d.q.pools[d.ranked[full].pool].slots})
	} else if d.target[c.pool] > 0 && c.grade.usable() {
		d.because(Reason{Code: d.firstBecause(i), RTT: c.rtt})
		d.passedOver(i)
	}
	if d.growing[c.pool] && d.target[c.pool] > 0 {
		d.because(Reason{Code: Growing, RTT: c.rtt})
	}
	if d.shares[c.pool] != d.target[c.pool] {
		d.because(Reason{Code: Moving, RTT: c.rtt})
	}
}

// firstBecause says why a candidate is the first: because it is the nearest, unless one behind it is nearer.
func (d *deciding) firstBecause(i int) Code {
	for j := i + 1; j < len(d.ranked); j++ {
		if d.ranked[j].permitted() && d.ranked[j].rtt < d.ranked[i].rtt {
			return Preferred
		}
	}
	return Nearest
}

// passedOver adds why the very nearest of those permitted does not serve in the place of candidate i.
func (d *deciding) passedOver(i int) {
	if i == 0 {
		return
	}
	r := d.condition(0)
	r.Cluster = d.clusterOf(0)
	d.because(r)
}

// condition says what keeps a candidate from serving.
func (d *deciding) condition(i int) Reason {
	p := &d.q.pools[d.ranked[i].pool]
	switch {
	case !p.grade.usable():
		return Reason{Code: Unhealthy, Healthy: p.healthy, Total: p.total}
	case p.grade.draining():
		return Reason{Code: Draining}
	}
	return Reason{Code: UnknownHealth, Healthy: p.healthy, Total: p.total}
}

func (d *deciding) whyStandby(i int) {
	c := &d.ranked[i]
	switch {
	case !slices.Contains(d.serving, i) && c.grade != fit:
		d.because(d.condition(i))
	case d.target[c.pool] > 0:
		d.because(Reason{Code: Moving, RTT: c.rtt})
	case d.servesBeyond(i):
		d.because(Reason{Code: Full, Slots: d.q.pools[c.pool].slots})
	case c.preferred != 0 && c.preferred < regionsLast:
		d.because(Reason{Code: Preferred, RTT: c.rtt})
	}
	d.because(Reason{Code: Failover, RTT: c.rtt})
}

// servesBeyond says whether a candidate ranked behind i is to serve, for want of room at i.
func (d *deciding) servesBeyond(i int) bool {
	return slices.ContainsFunc(d.ranked[i+1:], func(c candidate) bool { return c.permitted() && d.target[c.pool] > 0 })
}

func (d *deciding) whyRefused(c *candidate) {
	if c.bars&barBoundary != 0 {
		region := d.q.terrain.clusters[d.q.pools[c.pool].cluster].region
		d.because(Reason{Code: OutsideBoundary, Policies: d.class.forbidden[region]})
	}
	if c.bars&barFailover != 0 {
		d.because(Reason{Code: OutsideFailover})
	}
	if c.bars&barGateway != 0 {
		d.because(Reason{Code: Unreachable})
	}
}
