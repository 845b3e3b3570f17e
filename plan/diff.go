package plan

import (
	"cmp"
	"slices"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Change is what differs between two plans for one service's requests of one class from one viewpoint.
type Change struct {
	Viewpoint world.ViewpointID    `json:"viewpoint"`
	Service   policies.ServiceName `json:"service"`
	Class     world.ClassID        `json:"class"`
	// Clusters are those whose role, priority or share differs, by name.
	Clusters []ClusterChange `json:"clusters"`
	// Before and After say what becomes of the requests.
	Before Fate `json:"before"`
	After  Fate `json:"after"`
}

// Fate is what becomes of requests under a plan.
type Fate string

// The fates of requests.
const (
	// Absent: the plan has no such viewpoint, service or class.
	Absent Fate = "absent"
	// Served: a permitted cluster has an endpoint that may be used.
	Served Fate = "served"
	// NoCapacity: none has, and nothing binds the requests.
	NoCapacity Fate = "no capacity"
	// ResidencyRefused: no cluster inside the boundary has an endpoint that may be used. The requests are refused
	// rather than sent outside.
	ResidencyRefused Fate = "residency refused"
)

// Position is a cluster's place in a decision.
type Position struct {
	Role     Role     `json:"role"`
	Priority uint32   `json:"priority"`
	Share    uint32   `json:"share"`
	Reasons  []Reason `json:"reasons,omitempty"`
}

// ClusterChange is one cluster's place before and after; nil where it had none.
type ClusterChange struct {
	Cluster policies.ClusterName `json:"cluster"`
	Before  *Position            `json:"before,omitempty"`
	After   *Position            `json:"after,omitempty"`
}

// Diff says what differs from one plan to another, sorted by viewpoint, service, class. A change of reasons alone is
// none.
func Diff(before, after *Plan) []Change {
	var changes []Change
	merge(before.Decisions, after.Decisions, (*Decision).compare, func(b, a *Decision) {
		if a == b {
			return
		}
		c := Change{Clusters: clusterChanges(b, a), Before: b.Fate(), After: a.Fate()}
		if len(c.Clusters) > 0 || c.Before != c.After {
			named := cmp.Or(b, a)
			c.Viewpoint, c.Service, c.Class = named.Viewpoint, named.Service, named.Class
			changes = append(changes, c)
		}
	})
	return changes
}

// merge walks two sorted slices and yields equal elements together; one that the other slice lacks comes with zero.
func merge[T any](before, after []T, compare func(a, b T) int, yield func(before, after T)) {
	var none T
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && compare(before[0], after[0]) < 0:
			yield(before[0], none)
			before = before[1:]
		case len(before) == 0 || compare(before[0], after[0]) > 0:
			yield(none, after[0])
			after = after[1:]
		default:
			yield(before[0], after[0])
			before, after = before[1:], after[1:]
		}
	}
}

// Fate is what becomes of the decision's requests; Absent for nil.
func (d *Decision) Fate() Fate {
	switch {
	case d == nil:
		return Absent
	case d.Servable():
		return Served
	case d.Class.Pinned():
		return ResidencyRefused
	}
	return NoCapacity
}

func clusterChanges(before, after *Decision) []ClusterChange {
	var changes []ClusterChange
	byName := func(a, b *Choice) int { return cmp.Compare(a.Cluster, b.Cluster) }
	merge(choicesOf(before), choicesOf(after), byName, func(b, a *Choice) {
		if a != nil && b != nil && a.Role == b.Role && a.Priority == b.Priority && a.Share == b.Share {
			return
		}
		changes = append(changes, ClusterChange{cmp.Or(b, a).Cluster, positionOf(b), positionOf(a)})
	})
	return changes
}

// choicesOf are a decision's choices by name; none for nil.
func choicesOf(d *Decision) []*Choice {
	if d == nil {
		return nil
	}
	choices := make([]*Choice, len(d.Choices))
	for i := range d.Choices {
		choices[i] = &d.Choices[i]
	}
	slices.SortFunc(choices, func(a, b *Choice) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return choices
}

func positionOf(c *Choice) *Position {
	if c == nil {
		return nil
	}
	return &Position{c.Role, c.Priority, c.Share, c.Reasons}
}
