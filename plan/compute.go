package plan

import (
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Memo saves work from one Compute to the next. It has one owner, and its zero value is ready. What it holds never
// changes what is planned: each service's answer is kept under all that it depends on.
type Memo struct {
	residency *residency
	traffic   []policies.TrafficSpec // by place in Set.Services
	// spans say where in World.Pools each service's begin, by place in Set.Services, and at last where they end.
	spans   []int
	terrain *terrain
	answers []*answer // by place in Set.Services
	plan    *Plan
	planner planner
}

// Compute plans a world. It is pure: the same world gives the same plan, whatever the memo has seen; memo may be nil.
// Before the first policies are loaded the plan is empty.
func Compute(w *world.World, memo *Memo) *Plan {
	if w.Policies() == nil {
		return &Plan{Admission: &Admission{}}
	}
	if memo == nil {
		memo = &Memo{}
	}
	fresh := memo.survey(w)
	var changed []int
	for i := range w.Policies().Services {
		if memo.answer(w, i) {
			changed = append(changed, i)
		}
	}
	if fresh || len(changed) > 0 {
		memo.plan = memo.assemble(changed, fresh)
	} else if next := memo.nextAt(); !next.Equal(memo.plan.NextAt) {
		memo.plan = &Plan{memo.plan.Admission, memo.plan.Decisions, next}
	}
	return memo.plan
}

// survey brings what all services share up to date, and says whether it changed.
func (m *Memo) survey(w *world.World) bool {
	set := w.Policies()
	if m.terrain == nil || m.terrain.set != set {
		m.residency, m.spans = compile(set), spansOf(w)
		m.traffic = make([]policies.TrafficSpec, len(set.Services))
		old := m.answers
		m.answers = make([]*answer, len(set.Services))
		for i := range set.Services {
			m.traffic[i] = set.TrafficFor(set.Services[i].Metadata.Name)
			m.answers[i] = find(old, set.Services[i].Metadata.Name)
		}
	}
	old := m.terrain
	m.terrain = newTerrain(w, old)
	return m.terrain != old
}

// answer brings the answer for a service up to date, and says whether a decision changed.
func (m *Memo) answer(w *world.World, i int) bool {
	service := &m.terrain.set.Services[i]
	old, pools, traffic := m.answers[i], w.Pools()[m.spans[i]:m.spans[i+1]], w.Traffic()[i]
	if old.holds(m.terrain, pools, traffic, w.Now()) {
		return false
	}
	q := ask(w, m.terrain, service, &m.traffic[i], m.residency.classes[service.Metadata.Name])
	a := &answer{service: service.Metadata.Name, question: q, pools: pools, traffic: traffic}
	m.answers[i] = a
	if old != nil && old.question.equal(q) && old.at(w.Now()) {
		a.from, a.until, a.next, a.decisions = old.from, old.until, old.next, old.decisions
		return false
	}
	return m.planner.plan(a, old, w.Now())
}

// spansOf finds where each service's pools are. Only policies change that.
func spansOf(w *world.World) []int {
	spans := []int{0}
	for _, s := range w.Policies().Services {
		spans = append(spans, spans[len(spans)-1]+len(w.PoolsOf(s.Metadata.Name)))
	}
	return spans
}

// assemble makes a plan of the answers. Where the terrain is the same as before only what changed is put in place.
func (m *Memo) assemble(changed []int, fresh bool) *Plan {
	width := 0
	offsets := make([]int, len(m.answers))
	for i, a := range m.answers {
		offsets[i] = width
		width += len(a.question.classes)
	}
	var decisions []*Decision
	if fresh {
		decisions = make([]*Decision, width*len(m.terrain.origins))
		changed = changed[:0]
		for i := range m.answers {
			changed = append(changed, i)
		}
	} else {
		decisions = slices.Clone(m.plan.Decisions)
	}
	for _, i := range changed {
		a := m.answers[i]
		for key, d := range a.decisions {
			v, c := key/len(a.question.classes), key%len(a.question.classes)
			decisions[v*width+offsets[i]+c] = d
		}
	}
	return &Plan{m.residency.admission, decisions, m.nextAt()}
}

// nextAt is the earliest of the answers'.
func (m *Memo) nextAt() time.Time {
	var next time.Time
	for _, a := range m.answers {
		next = earliest(next, a.next)
	}
	return next
}

// earliest is the earlier of two times; zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
