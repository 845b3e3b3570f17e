package flow

import (
	"errors"
	"fmt"
)

// The bounds within which no sum that Solve forms can overflow: a path has at most MaxNodes arcs.
const (
	// MaxNodes is the most nodes of a graph, and MaxArcs the most arcs.
	MaxNodes = 1 << 20
	MaxArcs  = 1 << 22
	// MaxCapacity is the largest capacity of an arc.
	MaxCapacity = 1 << 40
	// MaxCost is the largest cost of an arc for one unit.
	MaxCost = 1 << 40
)

// The kinds of what can be wrong with a problem, for errors.Is.
var (
	// ErrRange is a node, capacity or cost outside of what the package takes.
	ErrRange = errors.New("out of range")
	// ErrOverflow is a total cost that does not fit into 63 bits.
	ErrOverflow = errors.New("total cost overflows")
)

// Arc names an arc of a Graph, in order of AddArc, from 0.
type Arc int32

// Graph is a directed graph with capacities and costs. The zero value is an empty graph: call Reset first.
type Graph struct {
	nodes int
	// Every arc is two entries, itself at 2i and its reverse at 2i+1, so that e^1 is the other direction.
	from, to []int32
	residual []int64
	cost     []int64

	search search
}

// Reset empties the graph and gives it nodes 0 to nodes-1. Buffers are kept.
func (g *Graph) Reset(nodes int) error {
	if nodes < 0 || nodes > MaxNodes {
		return fmt.Errorf("flow: %d nodes, want 0 to %d: %w", nodes, MaxNodes, ErrRange)
	}
	g.nodes = nodes
	g.from, g.to, g.residual, g.cost = g.from[:0], g.to[:0], g.residual[:0], g.cost[:0]
	return nil
}

// AddArc adds an arc that carries up to capacity units at cost each. Neither may be negative.
func (g *Graph) AddArc(from, to int, capacity, cost int64) (Arc, error) {
	switch {
	case from < 0 || from >= g.nodes || to < 0 || to >= g.nodes:
		return 0, fmt.Errorf("flow: arc from node %d to %d of %d nodes: %w", from, to, g.nodes, ErrRange)
	case capacity < 0 || capacity > MaxCapacity:
		return 0, fmt.Errorf("flow: arc from node %d to %d: capacity %d, want 0 to %d: %w", from, to, capacity, int64(MaxCapacity), ErrRange)
	case cost < 0 || cost > MaxCost:
		return 0, fmt.Errorf("flow: arc from node %d to %d: cost %d, want 0 to %d: %w", from, to, cost, int64(MaxCost), ErrRange)
	case len(g.to) >= 2*MaxArcs:
		return 0, fmt.Errorf("flow: more than %d arcs: %w", MaxArcs, ErrRange)
	}
	arc := Arc(len(g.to) / 2)
	g.from = append(g.from, int32(from), int32(to))
	g.to = append(g.to, int32(to), int32(from))
	g.residual = append(g.residual, capacity, 0)
	g.cost = append(g.cost, cost, -cost)
	return arc, nil
}

// Flow is how much of the solution goes over an arc.
func (g *Graph) Flow(arc Arc) int64 { return g.residual[2*arc+1] }
