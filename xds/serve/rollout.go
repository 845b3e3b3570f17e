package serve

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
)

// rollout decides which snapshot each proxy of a viewpoint is given. New configuration goes to a few of them first, the
// canaries, and to the rest once those have accepted it or have said nothing for a while; what a canary refuses is
// quarantined, and all have the last good one again. Changes of endpoints alone go to all at once: a dead server must leave
// everywhere.
//
// It does no I/O and reads no clock. One goroutine at a time owns it.
type rollout struct {
	share   float64
	timeout time.Duration

	stable *cache.Published // what all are given, but canaries during a trial; nil before the first
	good   *cache.Published // what was given before stable, and to return to while nobody has accepted stable; may be nil
	// accepted says that a proxy has accepted all of stable.
	accepted bool

	trial    *cache.Published // what canaries are given; nil where no trial is on
	canaries map[string]bool  // nodes, and whether they have accepted trial
	lost     int              // canaries that went away during the trial
	began    time.Time

	quarantine *Quarantine // what was refused last; nil once something else has taken its place
}

// Quarantine is configuration that is not given to a viewpoint's proxies, because one of them refused it.
type Quarantine struct {
	// Good is what they have instead.
	Good *xds.Snapshot
	// Refused are the resources that were refused, as far as the proxy told which. None where a trial was given up because
	// its canaries went away.
	Refused []*xds.Resource
	// Tried is the whole snapshot.
	Tried *xds.Snapshot
	// Node refused it, for this Reason, at this time.
	Node, Reason string
	At           time.Time
}

// lostMost is how many canaries may go away, one after the other, before the trial counts as the cause.
const lostMost = 3

// newest is what a node is given; nil before the first.
func (r *rollout) newest(node string) *cache.Published {
	if _, canary := r.canaries[node]; canary && r.trial != nil {
		return r.trial
	}
	return r.stable
}

// offer takes a new publication; eligible are the nodes that could try it.
func (r *rollout) offer(p *cache.Published, eligible func() []string, now time.Time) {
	if q := r.quarantine; q != nil && q.holds(p.Snapshot) {
		return
	}
	r.quarantine = nil
	switch {
	case r.stable == nil || r.share >= 1:
		r.promote(p)
	case r.trial != nil && sameStructure(r.trial.Snapshot, p.Snapshot):
		r.trial = p
		for node := range r.canaries {
			r.canaries[node] = false
		}
	case sameStructure(r.stable.Snapshot, p.Snapshot):
		r.promote(p)
	default:
		r.try(p, eligible(), now)
	}
}

// try begins a trial.
func (r *rollout) try(p *cache.Published, nodes []string, now time.Time) {
	if len(nodes) == 0 {
		r.promote(p)
		return
	}
	r.trial, r.began, r.lost, r.canaries = p, now, 0, map[string]bool{}
	for _, node := range draw(nodes, p.Snapshot, int(math.Ceil(r.share*float64(len(nodes))))) {
		r.canaries[node] = false
	}
}

// holds says whether a snapshot has what was refused in it.
func (q *Quarantine) holds(s *xds.Snapshot) bool {
	if s == q.Tried {
		return true
	}
	return slices.ContainsFunc(q.Refused, func(bad *xds.Resource) bool {
		r := s.Resource(bad.Type, bad.Name)
		return r != nil && r.Version == bad.Version && q.Good.Resource(bad.Type, bad.Name) != r
	})
}

// promote gives a snapshot to all.
func (r *rollout) promote(p *cache.Published) {
	if r.accepted || r.good == nil {
		r.good = r.stable
	}
	r.stable, r.accepted = p, false
	r.trial, r.canaries = nil, nil
}

// sameStructure says whether two snapshots differ in endpoints only.
func sameStructure(a, b *xds.Snapshot) bool {
	for _, types := range [][]xds.Type{a.Types(), b.Types()} {
		for _, t := range types {
			if t != xds.TypeEndpoint && a.Of(t) != b.Of(t) && a.Version(t) != b.Version(t) {
				return false
			}
		}
	}
	return true
}

// draw picks n nodes by a hash of their names and of the snapshot, so that it is not always the same ones that go first.
func draw(nodes []string, s *xds.Snapshot, n int) []string {
	salt := s.Version(xds.TypeCluster) + s.Version(xds.TypeListener) + s.Version(xds.TypeRoute)
	type lot struct {
		node string
		hash uint64
	}
	lots := make([]lot, len(nodes))
	for i, node := range nodes {
		h := fnv.New64a()
		_, _ = h.Write([]byte(salt + node)) // a hash never fails
		lots[i] = lot{node, h.Sum64()}
	}
	slices.SortFunc(lots, func(a, b lot) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.node, b.node)) })
	drawn := make([]string, 0, n)
	for _, l := range lots[:min(n, len(lots))] {
		drawn = append(drawn, l.node)
	}
	return drawn
}

// accept notes that a node has accepted all of a publication. promoted says that all are now given what was tried.
func (r *rollout) accept(node string, p *cache.Published) (promoted bool) {
	if p == r.stable {
		r.accepted = true
	}
	if _, canary := r.canaries[node]; !canary || p != r.trial || r.trial == nil {
		return false
	}
	r.canaries[node] = true
	return r.conclude()
}

// conclude ends the trial once every canary has accepted.
func (r *rollout) conclude() bool {
	for _, done := range r.canaries {
		if !done {
			return false
		}
	}
	r.promote(r.trial)
	r.accepted = true
	return true
}

// refuse notes that a node refused resources of a snapshot. It returns the quarantine that follows; nil where others have
// accepted the same, so that the trouble is the node's own.
func (r *rollout) refuse(node string, s *xds.Snapshot, resources []*xds.Resource, reason string, now time.Time) *Quarantine {
	_, canary := r.canaries[node]
	switch {
	case canary && r.trial != nil && s == r.trial.Snapshot:
		return r.withdraw(r.trial, r.stable, Quarantine{Refused: resources, Node: node, Reason: reason, At: now})
	case r.stable != nil && s == r.stable.Snapshot && r.trial == nil && !r.accepted && r.good != nil:
		return r.withdraw(r.stable, r.good, Quarantine{Refused: resources, Node: node, Reason: reason, At: now})
	}
	return nil
}

// withdraw gives all what was good, in the place of what was tried.
func (r *rollout) withdraw(tried, good *cache.Published, q Quarantine) *Quarantine {
	q.Tried, q.Good = tried.Snapshot, good.Snapshot
	r.quarantine = &q
	r.stable, r.trial, r.canaries = good, nil, nil
	r.accepted = true // by what it was good
	return r.quarantine
}

// leave notes that a node has gone; eligible are those that are left. It returns the quarantine that follows where canary after
// canary went: what is being tried may be what kills them.
func (r *rollout) leave(node string, eligible func() []string, now time.Time) (q *Quarantine, moved bool) {
	done, canary := r.canaries[node]
	if !canary || r.trial == nil {
		return nil, false
	}
	delete(r.canaries, node)
	if done {
		return nil, false
	}
	if r.lost++; r.lost >= lostMost {
		reason := fmt.Sprintf("%d proxies went away while they tried it", r.lost)
		return r.withdraw(r.trial, r.stable, Quarantine{Node: node, Reason: reason, At: now}), true
	}
	nodes := eligible()
	for _, next := range draw(nodes, r.trial.Snapshot, len(nodes)) {
		if _, has := r.canaries[next]; !has {
			r.canaries[next], r.began = false, now
			return nil, true
		}
	}
	return nil, r.conclude()
}

// tick ends a trial in which canaries have said nothing for too long.
func (r *rollout) tick(now time.Time) (promoted bool) {
	if r.trial == nil || now.Sub(r.began) < r.timeout {
		return false
	}
	r.promote(r.trial)
	return true
}
