package plan

import (
	"time"

	"github.com/meridian-mesh/meridian/world"
)

// drainSteps is in how many steps a cluster is emptied: each makes new configuration.
const drainSteps = 100

// left is how many of drainSteps are left of a cluster's draining at a time.
func (s *site) left(at time.Time) int64 {
	switch {
	case s.began.IsZero() || s.over <= 0:
		return 0
	case at.Before(s.began):
		return drainSteps
	}
	done := int64(at.Sub(s.began)) / max(1, int64(s.over)/drainSteps)
	return max(0, drainSteps-done)
}

// nextStep is when less will be left than at a time.
func (s *site) nextStep(at time.Time) time.Time {
	return s.began.Add(time.Duration(drainSteps-s.left(at)+1) * max(1, s.over/drainSteps))
}

// linger leaves a key's requests at clusters that are being emptied, as much as has not had to leave them yet: of what they had when their
// draining began, the part of it that is left. The rest of the target is scaled to what remains. It says when that changes; zero for
// never.
func (p *planner) linger(key int, now time.Time) (next time.Time) {
	row, inForce := p.row(key), p.q.inForce[key]
	var lingering uint32
	for _, s := range inForce.Shares {
		i, ok := p.q.poolIn(s.Cluster)
		if !ok || p.serves(key, i) || !p.q.pools[i].grade.usable() || !p.permits(key, i) {
			continue
		}
		at := &p.q.terrain.clusters[p.q.pools[i].cluster]
		before, left := at.left(inForce.At), at.left(now)
		if before == 0 || left == 0 {
			continue
		}
		p.lingers[i] = uint32((int64(s.Parts)*left + before/2) / before)
		lingering += p.lingers[i]
		next = earliest(next, at.nextStep(now))
	}
	if lingering == 0 {
		return time.Time{}
	}
	p.weights = append(p.weights[:0], make([]int64, len(row))...)
	for i, parts := range row {
		p.weights[i] = int64(parts)
	}
	copy(row, p.lingers)
	apportion(row, p.weights, world.ShareTotal-lingering, 1)
	return next
}

// permits says whether requests of a key may go to a pool.
func (p *planner) permits(key, pool int) bool {
	for i := range p.ranked(key) {
		if c := &p.ranked(key)[i]; c.pool == pool {
			return c.permitted()
		}
	}
	return false
}
