package identity

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// errBusy ends a connection for which there is no room.
var errBusy = errors.New("handshake: too many are in flight: try again later")

// gate bounds the handshakes in flight, in all and from one address. A connection that finds no slot waits in line; while
// any does, handshakes whose peers have kept us waiting for longer than patience are cut off. So slow peers and floods hold
// nobody back, and a storm of honest ones, which is slow because we are, is worked through in order.
type gate struct {
	// Set once.
	patience time.Duration
	slots    *turns
	line     chan struct{} // one for each connection that waits

	// Atomic.
	inFlight         atomic.Int64
	evicted, refused atomic.Uint64
}

func newGate(config TLS) *gate {
	most := int64(config.MostHandshakes)
	return &gate{patience: config.Patience, slots: newTurns(most, (most+1)/2), line: make(chan struct{}, config.MostWaiting)}
}

// enter waits for a slot until the deadline.
func (g *gate) enter(raw net.Conn, deadline time.Time) (*turn, error) {
	select {
	case g.line <- struct{}{}:
		defer func() { <-g.line }()
	default:
		g.refused.Add(1)
		return nil, errBusy
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	done, err := g.slots.take(ctx, addressOf(raw.RemoteAddr()))
	if err != nil {
		g.refused.Add(1)
		return nil, errBusy
	}
	g.inFlight.Add(1)
	t := &turn{Conn: raw, gate: g, done: done}
	t.timer = time.AfterFunc(g.patience, t.look)
	return t, nil
}

// addressOf is the IP address of an end of a connection, invalid where it has none.
func addressOf(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap()
}

// turn is a connection whose handshake is in flight, or was.
type turn struct {
	net.Conn

	// Set once.
	gate  *gate
	done  func()
	timer *time.Timer

	// Atomic.
	over  atomic.Bool
	since atomic.Int64 // when it began to wait for its peer, in Unix nanoseconds; 0 where it does not
}

// Read notes how long the handshake waits for its peer.
func (t *turn) Read(b []byte) (int, error) {
	if t.over.Load() {
		return t.Conn.Read(b)
	}
	t.since.Store(time.Now().UnixNano())
	defer t.since.Store(0)
	return t.Conn.Read(b)
}

// look cuts the handshake off if its peer keeps others waiting, or looks again later.
func (t *turn) look() {
	since := t.since.Load()
	switch waits := since > 0 && time.Now().UnixNano()-since >= int64(t.gate.patience); {
	case t.over.Load():
	case waits && len(t.gate.line) > 0:
		t.gate.evicted.Add(1)
		_ = t.Conn.Close() // its handshake sees that, ends, and gives its slot free
	default:
		t.timer.Reset(t.gate.patience / 2)
	}
}

// leave gives the slot free. The connection goes on without a gate.
func (t *turn) leave() {
	t.over.Store(true)
	t.timer.Stop()
	t.gate.inFlight.Add(-1)
	t.done()
}
