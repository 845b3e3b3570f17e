package health

import (
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Memo saves work from one Judge to the next: pools of which there is nothing new are not looked at. It has one owner, and its zero
// value is ready. What it holds never changes what is judged.
type Memo struct {
	rests []rest // by place in World.Pools
}

// rest is until when time alone changes nothing in a pool.
type rest struct {
	pool    *world.Pool
	service *policies.Service // by whose checks
	at      time.Time         // zero: never
}

// of are the rests of a world's pools, to be read and written.
func (m *Memo) of(w *world.World) []rest {
	n := len(w.Pools())
	if m == nil {
		return make([]rest, n)
	}
	m.rests = append(m.rests[:min(n, len(m.rests))], make([]rest, max(0, n-len(m.rests)))...)
	return slices.Clip(m.rests)
}

// holds says whether there is nothing to look at in a pool for want of signals.
func (r *rest) holds(p *world.Pool, s *policies.Service, now time.Time) bool {
	return r.pool == p && r.service == s && !expired(r.at, now)
}

// until ends the rest with the earlier of what it ends with and of times at which something stops to hold; zero never does.
func (r *rest) until(times ...time.Time) {
	for _, t := range times {
		if r.at.IsZero() || !t.IsZero() && t.Before(r.at) {
			r.at = t
		}
	}
}
