package plan

import (
	"cmp"
	"errors"
	"slices"

	"github.com/meridian-mesh/meridian/plan/flow"
	"github.com/meridian-mesh/meridian/world"
)

// quantum is how finely demand is divided: in hundredths of a key's requests, so that noise makes no new shares.
const quantum = world.ShareTotal / 100

// planner plans one service after the other. It holds buffers, and nothing that a plan depends on.
type planner struct {
	q     *question
	graph flow.Graph
	// candidates of every key, len(q.pools) each; key k's are at k*len(q.pools).
	candidates []candidate
	// serving is how many of a key's candidates, in order, can serve: those of the best grade there is.
	serving [][]int
	// target has a row of parts for each key, an entry for each pool.
	target []uint32
	// weights are a row before it is rounded.
	weights  []int64
	arcs     []arcOf
	left     []int64  // capacity that no demand is planned for yet, by pool
	growing  []bool   // by pool: demand is planned for that only replicas which are not there yet could serve
	lingers  []uint32 // of the key under way, by pool: what stays at those that are being emptied
	growth   []arcOf  // from pools to the sink, for such demand
	shares   []uint32 // of the key under way, by pool
	deciding deciding
}

// arcOf is an arc of the flow: from a key to a pool.
type arcOf struct {
	key, pool int
	arc       flow.Arc
}

// keys is how many combinations of a viewpoint and a class there are.
func (p *planner) keys() int { return len(p.q.demand) }

// ranked are the candidates of a key, row its target.
func (p *planner) ranked(key int) []candidate {
	n := len(p.q.pools)
	return p.candidates[key*n : (key+1)*n]
}

func (p *planner) row(key int) []uint32 {
	n := len(p.q.pools)
	return p.target[key*n : (key+1)*n]
}

// prepare ranks every key's candidates.
func (p *planner) prepare(q *question) {
	p.q = q
	p.candidates = p.candidates[:0]
	for v := range q.terrain.origins {
		for _, c := range q.classes {
			p.candidates = q.rank(p.candidates, v, c)
		}
	}
	p.target = slices.Grow(p.target[:0], len(p.candidates))[:len(p.candidates)]
	clear(p.target)
	p.shares = slices.Grow(p.shares[:0], len(q.pools))[:len(q.pools)]
	p.growing = slices.Grow(p.growing[:0], len(q.pools))[:len(q.pools)]
	clear(p.growing)
	p.left = p.left[:0]
	for i := range q.pools {
		p.left = append(p.left, q.pools[i].capacity)
	}
	p.serving = slices.Grow(p.serving[:0], p.keys())[:p.keys()]
	for key := range p.serving {
		p.serving[key] = servable(p.ranked(key), p.serving[key][:0])
	}
}

// servable lists the candidates that can serve, nearest first: those of the best grade that is permitted. Where none
// is usable the nearest alone is kept, so that Envoy can find out for itself.
func servable(ranked []candidate, into []int) []int {
	best := unfitDraining + 1
	for i := range ranked {
		if ranked[i].permitted() {
			best = min(best, ranked[i].grade)
		}
	}
	for i := range ranked {
		if ranked[i].permitted() && ranked[i].grade == best {
			into = append(into, i)
		}
	}
	if !best.usable() && len(into) > 1 {
		return into[:1]
	}
	return into
}

// aim sets the targets of all keys: where their demand should go, were it free to move at once.
//
// Demand goes to the nearest while all of it fits there. Where it does not, one minimum-cost flow over all keys at
// once says who moves on, and where to. What fits nowhere goes where there are accelerators for more replicas, which
// autoscalers add where demand is. What exceeds that too is spread over the pools permitted to it in proportion to the slots
// that they have or could have: each is equally overloaded then, and none outside the boundary is touched. A key without
// demand goes to the nearest that has room left.
func (p *planner) aim() {
	if !p.nearestSuffices() {
		p.spill()
	}
	for key := range p.keys() {
		if p.q.demand[key] == 0 {
			p.aimIdle(key)
		}
	}
}

// nearestSuffices tries to send all demand to the nearest, and says whether it fits.
func (p *planner) nearestSuffices() bool {
	fits := true
	for key, demand := range p.q.demand {
		if demand > 0 && len(p.serving[key]) > 0 {
			pool := p.ranked(key)[p.serving[key][0]].pool
			p.left[pool] -= demand
			fits = fits && (p.left[pool] >= 0 || !p.q.pools[pool].grade.usable())
			p.row(key)[pool] = world.ShareTotal
		}
	}
	return fits
}

// spill finds targets by a flow.
func (p *planner) spill() {
	clear(p.target)
	for i := range p.q.pools {
		p.left[i] = p.q.pools[i].capacity
	}
	carried := p.solve() == nil
	for _, g := range p.growth {
		p.growing[g.pool] = carried && p.graph.Flow(g.arc) > 0
	}
	arcs := p.arcs
	for key, demand := range p.q.demand {
		if demand == 0 || len(p.serving[key]) == 0 {
			continue
		}
		p.weights = slices.Grow(p.weights[:0], len(p.q.pools))[:len(p.q.pools)]
		clear(p.weights)
		unmet := demand
		for ; len(arcs) > 0 && arcs[0].key == key; arcs = arcs[1:] {
			if f := p.graph.Flow(arcs[0].arc); carried && f > 0 {
				p.weights[arcs[0].pool] += f
				p.left[arcs[0].pool] -= f
				unmet -= f
			}
		}
		p.spread(key, unmet)
		apportion(p.row(key), p.weights, world.ShareTotal, quantum)
	}
}

// solve builds the network source -> keys -> pools -> sink and solves it. An error can only mean that numbers are
// beyond what pools and demand can be.
func (p *planner) solve() error {
	p.arcs, p.growth = p.arcs[:0], p.growth[:0]
	keys, pools := p.keys(), len(p.q.pools)
	sink := keys + pools + 1
	err := p.graph.Reset(sink + 1)
	add := func(from, to int, capacity, cost int64) flow.Arc {
		arc, refused := p.graph.AddArc(from, to, capacity, cost)
		err = cmp.Or(err, refused)
		return arc
	}
	for key, demand := range p.q.demand {
		if demand == 0 || len(p.serving[key]) == 0 {
			continue
		}
		add(0, 1+key, demand, 0)
		for _, i := range p.serving[key] {
			c := p.ranked(key)[i]
			p.arcs = append(p.arcs, arcOf{key, c.pool, add(1+key, 1+keys+c.pool, demand, c.cost)})
		}
	}
	for i := range p.q.pools {
		add(1+keys+i, sink, p.q.pools[i].capacity, 0)
		if growth := p.q.pools[i].growth; growth > 0 {
			p.growth = append(p.growth, arcOf{-1, i, add(1+keys+i, sink, growth, flow.MaxCost)}) // dearer than any distance
		}
	}
	if err != nil {
		return err
	}
	if _, err = p.graph.Solve(0, sink); errors.Is(err, flow.ErrOverflow) {
		return nil // only what it costs can't be said
	}
	return err
}

// potential is what a pool has or could have, in thousandths of a slot.
func (p *pool) potential() int64 { return int64(p.slots)*unit + p.growth }

// spread adds demand that fits nowhere to the weights, in proportion to what pools have or could have.
func (p *planner) spread(key int, unmet int64) {
	ranked := p.ranked(key)
	var potential int64
	for _, i := range p.serving[key] {
		potential += p.q.pools[ranked[i].pool].potential()
	}
	if potential == 0 {
		p.weights[ranked[p.serving[key][0]].pool] += unmet
		return
	}
	for _, i := range p.serving[key] {
		pool := ranked[i].pool
		p.weights[pool] += int64(float64(unmet) * float64(p.q.pools[pool].potential()) / float64(potential))
	}
}

// aimIdle sends a key without demand to the nearest pool with room left; where none has, as if it had demand.
func (p *planner) aimIdle(key int) {
	for _, i := range p.serving[key] {
		if pool := p.ranked(key)[i].pool; p.left[pool] > 0 {
			p.row(key)[pool] = world.ShareTotal
			return
		}
	}
	if len(p.serving[key]) > 0 {
		p.weights = slices.Grow(p.weights[:0], len(p.q.pools))[:len(p.q.pools)]
		clear(p.weights)
		p.spread(key, unit*unit)
		apportion(p.row(key), p.weights, world.ShareTotal, quantum)
	}
}
