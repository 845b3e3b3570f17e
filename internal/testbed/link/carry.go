package link

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/port"
)

// carry connects a caller with the target, and ends when both directions have ended or either side is reset.
func (l *Link) carry(near *port.Conn) {
	accepted := time.Now()
	whole := l.connecting()
	if whole == nil {
		near.Reset()
		return
	}
	ctx, cancel := context.WithCancel(whole)
	defer cancel()
	delay := l.delayOf(near.RemoteAddr())
	far := l.dial(ctx, accepted, delay)
	if far == nil {
		near.Reset()
		return
	}
	reset := context.AfterFunc(ctx, func() {
		near.Reset()
		_ = far.SetLinger(0)
		_ = far.Close()
	})
	there := newPump(l, delay, &l.toTarget, near.TCPConn, far)
	there.last = accepted.Add(3 * delay) // the handshake comes first
	back := newPump(l, delay, &l.toCaller, far, near.TCPConn)
	var pumps sync.WaitGroup
	for _, p := range []*pump{there, back} {
		pumps.Go(func() { p.receive(ctx) })
		pumps.Go(func() { p.deliver(ctx, cancel) })
	}
	pumps.Wait()
	if reset() { // nothing has reset it: both directions came to their end
		_ = near.Close()
		_ = far.Close()
	}
}

// dial connects to the target when the caller's SYN arrives there. Where that fails, it returns nil when the caller would
// know.
func (l *Link) dial(ctx context.Context, sent time.Time, delay time.Duration) *net.TCPConn {
	if !l.arrive(ctx, sent.Add(delay)) {
		return nil
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", l.config.Target.String())
	if err != nil {
		l.arrive(ctx, time.Now().Add(delay))
		return nil
	}
	return c.(*net.TCPConn)
}
