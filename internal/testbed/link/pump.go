package link

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Window is how many bytes of a connection are on their way in each direction at most: packets of packetSize bytes.
const (
	Window     = windowPackets * packetSize
	packetSize = 32 << 10

	windowPackets = 128
)

// direction is what all connections share of one direction.
type direction struct {
	crossed atomic.Int64

	mu   sync.Mutex
	free time.Time // under mu: when the wire has sent all that it was given
}

// send says when the wire has sent so many more bytes.
func (d *direction) send(now time.Time, bytes int, perSecond int64) time.Time {
	if perSecond == 0 {
		return now
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.free.Before(now) {
		d.free = now
	}
	d.free = d.free.Add(time.Duration(float64(bytes) / float64(perSecond) * float64(time.Second)))
	return d.free
}

// pump carries one direction of one connection: receive puts packets on their way, deliver takes them off when due.
type pump struct {
	// Set once.
	link      *Link
	delay     time.Duration
	direction *direction
	from, to  *net.TCPConn
	onTheWay  chan packet

	last time.Time // only by receive: nothing may arrive before
}

// packet is some bytes, or the end.
type packet struct {
	due    time.Time
	buffer *[packetSize]byte // nil for the end
	size   int
	end    error // io.EOF where the sender has closed its side, anything else where the connection is broken
}

var buffers = sync.Pool{New: func() any { return new([packetSize]byte) }}

func newPump(l *Link, delay time.Duration, d *direction, from, to *net.TCPConn) *pump {
	return &pump{link: l, delay: delay, direction: d, from: from, to: to, onTheWay: make(chan packet, windowPackets)}
}

// receive reads until the end, which is the last packet.
func (p *pump) receive(ctx context.Context) {
	defer close(p.onTheWay)
	for {
		buffer := buffers.Get().(*[packetSize]byte)
		n, err := p.from.Read(buffer[:])
		if n > 0 && !p.put(ctx, packet{buffer: buffer, size: n}) {
			return
		}
		if err != nil {
			p.put(ctx, packet{end: err})
			return
		}
	}
}

// put puts a packet on its way. It waits while too many are.
func (p *pump) put(ctx context.Context, q packet) bool {
	c := p.link.config
	q.due = p.direction.send(time.Now(), q.size, c.BytesPerSecond).Add(p.delay)
	if c.Jitter > 0 {
		q.due = q.due.Add(rand.N(c.Jitter))
	}
	if q.due.Before(p.last) {
		q.due = p.last
	}
	p.last = q.due
	select {
	case p.onTheWay <- q:
		return true
	case <-ctx.Done():
		return false
	}
}

// deliver writes what has arrived. A connection that breaks is broken for both sides, by reset.
func (p *pump) deliver(ctx context.Context, reset context.CancelFunc) {
	for q := range p.onTheWay {
		if !p.link.arrive(ctx, q.due) {
			return
		}
		if err := p.hand(q); err != nil {
			// The end may be of the sender, of which the news has travelled with the packet; or of the receiver, and then
			// the news has still to travel back.
			if q.end == nil {
				p.link.arrive(ctx, time.Now().Add(p.delay))
			}
			reset()
			return
		}
	}
}

// hand gives a packet to the receiver.
func (p *pump) hand(q packet) error {
	if errors.Is(q.end, io.EOF) {
		return p.to.CloseWrite()
	}
	if q.end != nil {
		return q.end
	}
	n, err := p.to.Write(q.buffer[:q.size])
	p.direction.crossed.Add(int64(n))
	buffers.Put(q.buffer)
	return err
}
