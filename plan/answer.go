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
	// pools and traffic are what the world held when the question was asked, to see quickly that it is the same.
	pools   []*world.Pool
	traffic *world.Traffic
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

// holds says whether the answer is good now without asking the question again: all that it would be asked from is the
// same.
func (a *answer) holds(t *terrain, pools []*world.Pool, traffic *world.Traffic, now time.Time) bool {
	return a != nil && a.question.terrain == t && a.traffic == traffic && slices.Equal(a.pools, pools) && a.at(now)
}

// plan answers the question of a. Decisions that an older answer has already are taken from there; it says whether
// any is new, or gone.
func (p *planner) plan(a, old *answer, now time.Time) (changed bool) {
	p.prepare(a.question)
	p.aim()
	a.from = now
	a.decisions = make([]*Decision, 0, p.keys())
	var before []*Decision
	if old != nil {
		before = old.decisions
	}
	changed = len(before) != p.keys()
	for v := range a.question.terrain.origins {
		for _, class := range a.question.classes {
			key := len(a.decisions)
			m := p.settle(key, now, p.shares)
			a.until, a.next = earliest(a.until, m.until), earliest(a.next, m.next)
			made := Decision{a.question.terrain.origins[v].id, a.service, class.id, p.decide(key, p.shares)}
			for len(before) > 0 && before[0].compare(&made) < 0 {
				before = before[1:]
			}
			if len(before) > 0 && before[0].equal(&made) {
				a.decisions = append(a.decisions, before[0])
				continue
			}
			a.decisions = append(a.decisions, made.clone())
			changed = true
		}
	}
	return changed
}
