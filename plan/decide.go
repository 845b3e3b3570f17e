package plan

import (
	"cmp"
	"slices"

	"github.com/meridian-mesh/meridian/policies"
)

// deciding is one decision under way.
type deciding struct {
	q       *question
	ranked  []candidate
	serving []int    // places in ranked
	target  []uint32 // by pool
	shares  []uint32 // by pool
	reasons []Reason // the backing of every choice's
}

// decide turns the shares of a key into choices with their reasons.
func (p *planner) decide(key int, shares []uint32) []Choice {
	d := deciding{p.q, p.ranked(key), p.serving[key], p.row(key), shares, make([]Reason, 0, 2*len(shares))}
	choices := make([]Choice, len(d.ranked))
	for i := range d.ranked {
		choices[i] = d.choice(i)
	}
	order := func(a, b int) int { return d.compare(a, b) }
	return d.number(d.sorted(choices, order))
}

// sorted puts choices, which are in order of rank, into their final order.
func (d *deciding) sorted(choices []Choice, order func(a, b int) int) []Choice {
	places := make([]int, len(choices))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, order)
	sorted := make([]Choice, len(choices))
	for i, place := range places {
		sorted[i] = choices[place]
	}
	return sorted
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

// number gives those that stand by their priorities.
func (d *deciding) number(choices []Choice) []Choice {
	var next uint32
	for i := range choices {
		if choices[i].Role == Serving {
			next = 1
		}
		if choices[i].Role == Standby {
			choices[i].Priority = next
			next++
		}
	}
	return choices
}

func (d *deciding) choice(i int) Choice {
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
	return choice
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
	if len(d.serving) > 0 && i != d.serving[0] && d.target[c.pool] > 0 {
		full := d.serving[0]
		d.because(Reason{Code: Spill, RTT: c.rtt, Cluster: d.clusterOf(full), Slots: d.q.pools[d.ranked[full].pool].slots})
	} else if d.target[c.pool] > 0 && c.grade.usable() {
		d.because(Reason{Code: d.firstBecause(i), RTT: c.rtt})
		d.passedOver(i)
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
	if c.forbidden != nil {
		d.because(Reason{Code: OutsideBoundary, Policies: c.forbidden})
	}
	if c.outside {
		d.because(Reason{Code: OutsideFailover})
	}
	if c.unreachable {
		d.because(Reason{Code: Unreachable})
	}
}
