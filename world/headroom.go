package world

import (
	"math"

	"github.com/meridian-mesh/meridian/policies"
)

// Headroom is how much a pool can take now.
type Headroom struct {
	// Total, Healthy and Unknown count endpoints; the rest of Total is unhealthy.
	Total, Healthy, Unknown int
	// Slots, Running, Waiting and Free count requests, over the healthy endpoints; where none is healthy, over the
	// unknown ones, which are used only when nothing better is permitted.
	//
	// Slots is how many can be served at a time. Running and Waiting were reported by the endpoints. Free is how
	// many more would be served at once: at most Slots-Running-Waiting, less where KV caches fill up or numbers are
	// missing.
	Slots, Running, Waiting, Free int
}

// kvCacheFull is the KV-cache use from which an endpoint counts as full. Above it, vLLM preempts running requests to
// make room for new ones, and computes their caches again: more work for the same answers.
const kvCacheFull = 0.95

// Headroom sums what the pool's endpoints can take, by the capacity of the pool's service.
func (p *Pool) Headroom(c policies.Capacity) Headroom {
	h, unknown := Headroom{Total: len(p.Endpoints)}, Headroom{}
	for i := range p.Endpoints {
		switch e := &p.Endpoints[i]; p.VerdictOf(e) {
		case Healthy:
			h.Healthy++
			h.add(&e.Load, c)
		case Unknown:
			h.Unknown++
			unknown.add(&e.Load, c)
		}
	}
	if h.Healthy == 0 {
		h.Slots, h.Running, h.Waiting, h.Free = unknown.Slots, unknown.Running, unknown.Waiting, unknown.Free
	}
	return h
}

// add counts one endpoint. Of an endpoint that should say how loaded it is and does not, half the slots are assumed
// free, or fewer where its last numbers said so: it is not left idle for want of metrics, nor filled blindly. Numbers
// that are stale are not counted as running or waiting.
func (h *Headroom) add(l *Load, c policies.Capacity) {
	slots := max(0, c.SlotsPerEndpoint)
	h.Slots += slots
	switch {
	case c.Source != policies.CapacityVLLM:
		h.Free += slots
	case l.At.IsZero() || l.Stale:
		h.Free += min(slots/2, l.free(slots))
	default:
		h.Running += max(0, l.Running)
		h.Waiting += max(0, l.Waiting)
		h.Free += l.free(slots)
	}
}

// free is how many of an endpoint's slots the load leaves: those that are idle, but no larger a part of all slots than
// is free of the KV cache.
func (l *Load) free(slots int) int {
	if l.KVCacheUse >= kvCacheFull {
		return 0
	}
	byCache := int(math.Floor(float64(slots) * (1 - l.KVCacheUse)))
	return min(max(0, slots-l.Running-l.Waiting), max(0, byCache))
}
