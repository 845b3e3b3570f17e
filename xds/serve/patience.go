package serve

import (
	"time"

	"github.com/meridian-mesh/meridian/xds"
)

// due is when the session next has something to do by itself: when a response will have been unanswered for as long as
// patience, or when lifetimes must be renewed. Zero where there is nothing.
func (s *session) due(patience time.Duration) time.Time {
	var first time.Time
	soonest := func(at time.Time) {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for _, k := range s.kinds {
		if len(k.outstanding) > 0 && !k.overdue {
			soonest(k.outstanding[0].at.Add(patience))
		}
		if every := s.beat(k); every > 0 {
			soonest(k.beaten.Add(every))
		}
	}
	return first
}

// hurry sends what waits for answers that have not come within patience, and renews lifetimes that need it.
func (s *session) hurry(patience time.Duration) []response {
	var out []response
	for _, k := range s.kinds {
		k.overdue = k.overdue || len(k.outstanding) > 0 && !s.now.Before(k.outstanding[0].at.Add(patience))
		if every := s.beat(k); every > 0 && !s.now.Before(k.beaten.Add(every)) {
			out = append(out, s.heartbeat(k)...)
		}
	}
	return append(out, s.advance()...)
}

// beat is how often the lifetimes of what a client holds are renewed: three times in the shortest. 0 where it holds nothing
// that has one, or does not understand them.
func (s *session) beat(k *kind) time.Duration {
	if !s.lifetimes || !k.synced || !k.sent.Mortal() {
		return 0
	}
	var shortest time.Duration
	for _, r := range k.mortal() {
		if shortest == 0 || r.TTL < shortest {
			shortest = r.TTL
		}
	}
	return shortest / 3
}

// mortal are the resources with a lifetime that a client holds.
func (k *kind) mortal() []*xds.Resource {
	var all []*xds.Resource
	for r := range k.sent.All() {
		if r.TTL > 0 && k.sub.wants(r) {
			all = append(all, r)
		}
	}
	return all
}

// heartbeat renews lifetimes, as the xDS protocol's "TTL" section says. Nobody waits for its answer.
func (s *session) heartbeat(k *kind) []response {
	k.beaten = s.now
	r := s.response(k)
	r.resources, r.heartbeat = k.mortal(), true
	return []response{r}
}
