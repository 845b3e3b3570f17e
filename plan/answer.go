package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// answer is the plan of one service, and what it was made from.
type answer struct {
	service  policies.ServiceName
	question *question
	// pools and demand are what the world held when the question was asked, to see quickly that it is the same.
	pools  []*world.Pool
	demand []world.DemandOf
	// from is when the answer was made; it holds at other times before until, or at all times where that is zero.
	from, until time.Time
	// next is when to plan again because shares are moving; zero where they are not.
	next time.Time
	// decisions are by viewpoint and class, as in question.
	decisions []*Decision
}

// find is the answer for a service; nil where there is none. Answers are sorted by service.
func find(answers []*answer, service policies.ServiceName) *answer {
	i, ok := slices.BinarySearchFunc(answers, service, func(a *answer, s policies.ServiceName) int { return strings.Compare(string(a.service), string(s)) })
	if !ok {
		return nil
	}
	return answers[i]
}

// at says whether the answer holds at a time.
func (a *answer) at(now time.Time) bool {
	return a.until.IsZero() || now.Equal(a.from) || now.After(a.from) && now.Before(a.until)
}

// holds says whether the answer is that of a world, without asking the question again: everything that it was asked
// from is the same.
func (a *answer) holds(w *world.World, t *terrain) bool {
	if a == nil || a.question.terrain != t || !a.at(w.Now()) {
		return false
	}
	return slices.Equal(a.pools, w.PoolsOf(a.service)) && sameDemand(a.demand, w.DemandFor(a.service)) && a.sharesHold(w)
}

// sameDemand compares demand, at once where both are the same memory.
func sameDemand(a, b []world.DemandOf) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// sharesHold says whether the shares in force are those of the question.
func (a *answer) sharesHold(w *world.World) bool {
	key := 0
	for v := range a.question.terrain.origins {
		for _, c := range a.question.classes {
			now, _ := w.SharesInForce(world.DemandKey{Viewpoint: a.question.terrain.origins[v].id, Service: a.service, Class: c.id})
			then := a.question.inForce[key]
			if !then.At.Equal(now.At) || !slices.Equal(then.Shares, now.Shares) {
				return false
			}
			key++
		}
	}
	return true
}

// plan answers the question.
func (p *planner) plan(a *answer, now time.Time) {
	p.prepare(a.question)
	p.aim()
	a.from = now
	a.decisions = make([]*Decision, 0, p.keys())
	shares := make([]uint32, len(a.question.pools))
	for v := range a.question.terrain.origins {
		for _, class := range a.question.classes {
			key := len(a.decisions)
			m := p.move(key, now, shares)
			a.until, a.next = earliest(a.until, m.until), earliest(a.next, m.next)
			a.decisions = append(a.decisions, &Decision{
				Viewpoint: a.question.terrain.origins[v].id, Service: a.service, Class: class.id, Choices: p.decide(key, shares),
			})
		}
	}
}

// reuse puts the pointers of an older answer in the place of equal decisions, and says whether any are new.
func (a *answer) reuse(old *answer) bool {
	if old == nil {
		return true
	}
	changed := len(a.decisions) != len(old.decisions)
	before := old.decisions
	for i, d := range a.decisions {
		for len(before) > 0 && before[0].compare(d) < 0 {
			before = before[1:]
		}
		if len(before) > 0 && before[0].equal(d) {
			a.decisions[i] = before[0]
		} else {
			changed = true
		}
	}
	return changed
}
