package plan

import (
	"time"

	"github.com/meridian-mesh/meridian/world"
)

// How shares move. Demand is measured seconds late and servers' gauges later still; shares that ran after every
// measurement would swing.
const (
	// step is the least time between two movements of a key: each makes new configuration.
	step = 500 * time.Millisecond
	// longestStep bounds what one movement makes up for, however long ago the last was.
	longestStep = time.Second
	// A cluster's share is changed only if that is worth new configuration: by least at least, and by leastRatio of
	// the larger of old and new; entry is the least share with which a cluster starts to serve. Leaving a cluster
	// that the target leaves is always worth it.
	least      = 2 * quantum
	leastRatio = 0.1
	entry      = 5 * quantum
)

// motion says how a key's shares stand to its target.
type motion struct {
	// until is when the same question has another answer: zero for never.
	until time.Time
	// next is when to plan again; zero where the target is reached.
	next time.Time
}

// settle moves the shares of a key. Where they stay although the target is another, the target is dropped: what is said
// of the choices must not change with targets that are not followed.
func (p *planner) settle(key int, now time.Time, shares []uint32) motion {
	p.lingers = append(p.lingers[:0], make([]uint32, len(shares))...)
	emptier := p.linger(key, now)
	m := p.move(key, now, shares)
	if m.next.IsZero() {
		copy(p.row(key), shares)
	}
	return motion{earliest(m.until, emptier), earliest(m.next, emptier)}
}

// move fills in the shares of a key: those in force, moved towards the target as far as may be at once.
//
// What is in force at pools that no longer serve leaves at once, or lingers while they are emptied. Between pools that do, at most MaxShiftPerSecond moves
// for each second since the shares came into force, and nothing where that is not worth it.
func (p *planner) move(key int, now time.Time, shares []uint32) motion {
	target, inForce := p.row(key), p.q.inForce[key]
	kept, valid := p.keep(key, inForce.Shares, shares)
	if !valid || len(p.serving[key]) == 0 {
		copy(shares, target)
		return motion{}
	}
	if kept == world.ShareTotal && !worthwhile(shares, target) {
		return motion{}
	}
	shift(shares, target, world.ShareTotal-kept)
	over := surplus(shares, target)
	if over == 0 {
		return motion{}
	}
	if p.idle(key) {
		copy(shares, target)
		return motion{}
	}
	due := inForce.At.Add(step)
	if now.Before(due) {
		return motion{until: due, next: due}
	}
	budget := p.budget(now.Sub(inForce.At))
	trade(shares, target, min(over, budget))
	if over <= budget {
		return motion{until: now}
	}
	return motion{until: now, next: now.Add(step)}
}

// idle says whether a key has no demand, so that moving its shares moves nobody.
func (p *planner) idle(key int) bool { return p.q.demand[key] == 0 }

// keep fills in what is in force at pools that may serve still, and what lingers at others, and says how much that is. The rest of shares is 0.
// valid is false where there are no shares in force.
func (p *planner) keep(key int, inForce []world.Share, shares []uint32) (kept uint32, valid bool) {
	clear(shares)
	var total uint32
	for _, s := range inForce {
		total += s.Parts
		i, ok := p.q.poolIn(s.Cluster)
		switch {
		case ok && p.serves(key, i):
			shares[i] = s.Parts
		case ok:
			shares[i] = p.lingers[i]
		default:
			continue
		}
		kept += shares[i]
	}
	return kept, total == world.ShareTotal
}

// serves says whether a pool is one of those that can serve a key.
func (p *planner) serves(key, pool int) bool {
	for _, i := range p.serving[key] {
		if p.ranked(key)[i].pool == pool {
			return true
		}
	}
	return false
}

// budget is how many parts may move after a time.
func (p *planner) budget(elapsed time.Duration) uint32 {
	perSecond := time.Duration(p.q.traffic.Spill.MaxShiftPerSecond) * world.ShareTotal / 100
	return uint32(perSecond * min(elapsed, longestStep) / time.Second)
}

// worthwhile says whether a target differs enough from the shares.
func worthwhile(shares, target []uint32) bool {
	for i := range shares {
		s, t := shares[i], target[i]
		change := max(s, t) - min(s, t)
		switch {
		case change == 0:
		case t == 0, s == 0 && t >= entry:
			return true
		case s > 0 && change >= least && float64(change) >= leastRatio*float64(max(s, t)):
			return true
		}
	}
	return false
}

// surplus is how much of the shares is where the target does not want it.
func surplus(shares, target []uint32) uint32 {
	var over uint32
	for i := range shares {
		over += max(shares[i], target[i]) - target[i]
	}
	return over
}

// shift gives parts to where the target wants more than there is, in proportion to how much more.
func shift(shares, target []uint32, parts uint32) {
	if parts == 0 {
		return
	}
	wants := make([]uint32, len(shares))
	for i := range shares {
		wants[i] = max(shares[i], target[i]) - shares[i]
	}
	apportion(shares, wants, parts, 1)
}

// trade takes parts from where the target wants less, in proportion to how much less, and shifts them.
func trade(shares, target []uint32, parts uint32) {
	spare, taken := make([]uint32, len(shares)), make([]uint32, len(shares))
	for i := range shares {
		spare[i] = max(shares[i], target[i]) - target[i]
	}
	apportion(taken, spare, parts, 1)
	shift(shares, target, parts)
	for i := range shares {
		shares[i] -= taken[i]
	}
}
