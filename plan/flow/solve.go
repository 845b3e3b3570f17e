package flow

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Total is how much flows from source to sink, and what that costs.
type Total struct {
	Flow, Cost int64
}

// Solve sends as much as the arcs carry from source to sink, and of all ways to do so takes one that costs least. It
// is to be called once after the arcs were added; Flow then says what each carries.
func (g *Graph) Solve(source, sink int) (Total, error) {
	if source < 0 || source >= g.nodes || sink < 0 || sink >= g.nodes || source == sink {
		return Total{}, fmt.Errorf("flow: from node %d to node %d of %d, want two different nodes: %w", source, sink, g.nodes, ErrRange)
	}
	g.search.begin(g)
	var total Total
	for g.shortest(source, sink) {
		total.Flow += g.block(int32(source), int32(sink), math.MaxInt64)
	}
	var err error
	total.Cost, err = g.totalCost()
	return total, err
}

func (g *Graph) totalCost() (int64, error) {
	var total uint64
	for e := 0; e < len(g.to); e += 2 {
		over, product := bits.Mul64(uint64(g.residual[e+1]), uint64(g.cost[e]))
		sum, carry := bits.Add64(total, product, 0)
		if over != 0 || carry != 0 || sum > math.MaxInt64 {
			return 0, fmt.Errorf("flow: %w", ErrOverflow)
		}
		total = sum
	}
	return int64(total), nil
}

// unreached is farther than any path.
const unreached = math.MaxInt64

// search is the state of Solve; its slices are kept between problems.
type search struct {
	// out lists the entries that leave node v at out[start[v]:start[v+1]], in order of AddArc.
	start, out []int32
	// potential makes every residual entry's reduced cost, cost + potential[from] - potential[to], non-negative.
	potential []int64
	// distance is by reduced costs, from the source; exact for settled nodes.
	distance []int64
	settled  []bool
	// next is where block goes on in a node's list; onPath is the path that block is on.
	next   []int32
	onPath []bool
	heap   heap
}

// begin sorts the arcs by the node that they leave.
func (s *search) begin(g *Graph) {
	n := g.nodes
	s.start = resize(s.start, n+1)
	s.out = resize(s.out, len(g.to))
	s.potential = resize(s.potential, n)
	s.distance = resize(s.distance, n)
	s.settled = resize(s.settled, n)
	s.next = resize(s.next, n)
	s.onPath = resize(s.onPath, n)
	for _, from := range g.from {
		s.start[from+1]++
	}
	for v := range n {
		s.start[v+1] += s.start[v]
	}
	copy(s.next, s.start)
	for e, from := range g.from {
		s.out[s.next[from]] = int32(e)
		s.next[from]++
	}
}

// resize gives a zeroed slice of a length, in the old memory where it suffices.
func resize[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// shortest finds how far the sink is in the residual graph, and moves the potentials so that exactly the entries on
// shortest paths have no reduced cost. It says whether the sink can be reached. Nodes farther than the sink need not
// be settled: their potentials move as far as the sink's.
func (g *Graph) shortest(source, sink int) bool {
	s := &g.search
	for v := range s.distance {
		s.distance[v], s.settled[v] = unreached, false
	}
	s.distance[source] = 0
	s.heap = append(s.heap[:0], item{0, int32(source)})
	for len(s.heap) > 0 && !s.settled[sink] {
		v := s.heap.pop().node
		if !s.settled[v] {
			s.settled[v] = true
			g.relax(v)
		}
	}
	if !s.settled[sink] {
		return false
	}
	farthest := s.distance[sink]
	for v := range s.potential {
		s.potential[v] += min(s.distance[v], farthest)
	}
	copy(s.next, s.start)
	return true
}

// relax offers node v's distance to those it leads to.
func (g *Graph) relax(v int32) {
	s := &g.search
	base := s.distance[v] + s.potential[v]
	for _, e := range s.out[s.start[v]:s.start[v+1]] {
		to := g.to[e]
		if g.residual[e] == 0 || s.settled[to] {
			continue
		}
		if d := base + g.cost[e] - s.potential[to]; d < s.distance[to] {
			s.distance[to] = d
			s.heap.push(item{d, to})
		}
	}
}

// block sends up to limit from v to the sink over entries without reduced cost, depth first, until no such path is
// left. A node whose list is used up is not tried again before the next search.
func (g *Graph) block(v, sink int32, limit int64) int64 {
	if v == sink {
		return limit
	}
	s := &g.search
	s.onPath[v] = true
	var sent int64
	for ; s.next[v] < s.start[v+1]; s.next[v]++ {
		e := s.out[s.next[v]]
		to := g.to[e]
		if g.residual[e] == 0 || s.onPath[to] || g.cost[e]+s.potential[v] != s.potential[to] {
			continue
		}
		part := g.block(to, sink, min(limit-sent, g.residual[e]))
		g.residual[e] -= part
		g.residual[e^1] += part
		if sent += part; sent == limit {
			break
		}
	}
	s.onPath[v] = false
	return sent
}
