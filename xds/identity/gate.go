package identity

import (
	"container/list"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// errBusy ends a connection for which there is no room.
var errBusy = errors.New("handshake: too many are in flight: try again later")

// gate bounds the handshakes in flight. A connection that finds no slot waits in line; while any does, handshakes whose
// peers have kept us waiting for longer than patience are cut off, the longest wait first. So slow peers hold nobody back,
// however many they are, and a storm of honest ones, which is slow because we are, is worked through in order.
type gate struct {
	// Set once.
	patience time.Duration
	slots    chan struct{} // one for each handshake in flight
	line     chan struct{} // one for each connection that waits

	mu   sync.Mutex
	idle list.List // of *turn, under mu: those that wait for their peers, the longest first

	// Atomic.
	evicted, refused atomic.Uint64
}

func newGate(config TLS) *gate {
	return &gate{patience: config.Patience, slots: make(chan struct{}, config.MostHandshakes), line: make(chan struct{}, config.MostWaiting)}
}

// turn is a connection whose handshake is in flight, or was.
type turn struct {
	net.Conn
	gate *gate
	over atomic.Bool

	idle  *list.Element // under gate.mu; nil where it is not waiting for its peer
	since time.Time     // under gate.mu: when it began to wait
}

// enter waits for a slot until the deadline.
func (g *gate) enter(raw net.Conn, deadline time.Time) (*turn, error) {
	t := &turn{Conn: raw, gate: g}
	select {
	case g.slots <- struct{}{}:
		return t, nil
	default:
	}
	select {
	case g.line <- struct{}{}:
		defer func() { <-g.line }()
	default:
		g.refused.Add(1)
		return nil, errBusy
	}
	for {
		wait := time.NewTimer(g.evict(time.Now()))
		select {
		case g.slots <- struct{}{}:
			wait.Stop()
			return t, nil
		case now := <-wait.C:
			if now.After(deadline) {
				g.refused.Add(1)
				return nil, errBusy
			}
		}
	}
}

// evict cuts off the handshake that has waited for its peer the longest, if that is too long, and says when to look again.
func (g *gate) evict(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	front := g.idle.Front()
	if front == nil {
		return g.patience
	}
	t := front.Value.(*turn)
	if waited := now.Sub(t.since); waited < g.patience {
		return g.patience - waited
	}
	g.idle.Remove(front)
	t.idle = nil
	g.evicted.Add(1)
	_ = t.Conn.Close() // its handshake sees that, ends, and gives its slot free
	return g.patience
}

// Read notes that the handshake waits for its peer.
func (t *turn) Read(b []byte) (int, error) {
	if t.over.Load() {
		return t.Conn.Read(b)
	}
	t.gate.mu.Lock()
	t.since = time.Now()
	t.idle = t.gate.idle.PushBack(t)
	t.gate.mu.Unlock()
	n, err := t.Conn.Read(b)
	t.gate.mu.Lock()
	t.resume()
	t.gate.mu.Unlock()
	return n, err
}

// resume takes it off the list of those that wait. The caller holds gate.mu.
func (t *turn) resume() {
	if t.idle != nil {
		t.gate.idle.Remove(t.idle)
		t.idle = nil
	}
}

// leave gives the slot free. The connection goes on without a gate.
func (t *turn) leave() {
	t.over.Store(true)
	<-t.gate.slots
}
