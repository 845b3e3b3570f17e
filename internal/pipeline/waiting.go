package pipeline

import (
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/world"
)

// waiting is whether the first plan waits for member clusters. The zero value does.
type waiting struct {
	until time.Time // zero before there are policies
	over  bool
}

// standing is what a cycle does about it.
type standing int

const (
	// goOn: nothing is waited for.
	goOn standing = iota
	// hold: nothing is planned yet.
	hold
	// release: the waiting has just ended, and all that came in meanwhile is to be planned.
	release
)

// look says what a cycle does, with the world of now.
func (w *waiting) look(now *world.World, at time.Time, most time.Duration) standing {
	if w.over || now.Policies() == nil {
		return goOn
	}
	if w.until.IsZero() {
		w.until = at.Add(most)
	}
	lacking := slices.ContainsFunc(now.Pools(), func(p *world.Pool) bool { return !p.Found })
	if lacking && at.Before(w.until) {
		return hold
	}
	w.over = true
	return release
}
