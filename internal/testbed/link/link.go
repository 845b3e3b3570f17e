package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/port"
)

// Config configures a Link.
type Config struct {
	// Listen is a loopback address; port 0 takes any that is free. Required.
	Listen netip.AddrPort
	// Target is where it leads. Required.
	Target netip.AddrPort
	// OneWayDelay is half of the round-trip time.
	OneWayDelay time.Duration
	// DelayFrom, where given, is half of the round-trip time for a caller's address instead: one place can be differently
	// far from others.
	DelayFrom func(caller netip.Addr) time.Duration
	// Jitter is the most that is added to the delay, at random. Order is kept.
	Jitter time.Duration
	// BytesPerSecond is what passes in each direction, over all connections. 0 is without limit.
	BytesPerSecond int64
}

// Link is one link. Make one with New, then Run it.
type Link struct {
	// Set once.
	config   Config
	port     *port.Port
	toTarget direction
	toCaller direction

	// Under mu.
	mu     sync.Mutex
	passes chan struct{}      // closed while bytes pass
	whole  context.Context    // ends when it is cut; nil while it is
	cut    context.CancelFunc // ends whole
}

// New listens; Run carries. The caller must Run the Link.
func New(c Config) (*Link, error) {
	if !c.Target.IsValid() || c.Target.Port() == 0 {
		return nil, fmt.Errorf("link: Config.Target %s is no address with a port", c.Target)
	}
	if c.OneWayDelay < 0 || c.Jitter < 0 || c.BytesPerSecond < 0 {
		return nil, fmt.Errorf("link to %s: a delay, jitter or bandwidth is negative", c.Target)
	}
	p, err := port.Open(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("link to %s: %w", c.Target, err)
	}
	l := &Link{config: c, port: p, passes: make(chan struct{})}
	close(l.passes)
	l.whole, l.cut = context.WithCancel(context.Background())
	return l, nil
}

// Run carries connections until ctx ends, which resets them all. It may be called once.
func (l *Link) Run(ctx context.Context) error {
	var conns sync.WaitGroup
	defer conns.Wait()
	stop := context.AfterFunc(ctx, func() { _ = l.port.Close() })
	defer stop()
	for {
		near, err := l.port.Accept()
		if err != nil {
			l.end()
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return errors.Join(err, l.port.Close())
		}
		conns.Go(func() { l.carry(near.(*port.Conn)) })
	}
}

// end cuts it for good.
func (l *Link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut()
	l.whole = nil
	l.port.Reset()
}

// Addr is where it listens.
func (l *Link) Addr() netip.AddrPort { return l.port.AddrPort() }

// delayOf is half of the round-trip time for a caller.
func (l *Link) delayOf(caller net.Addr) time.Duration {
	tcp, ok := caller.(*net.TCPAddr)
	if l.config.DelayFrom == nil || !ok {
		return l.config.OneWayDelay
	}
	return l.config.DelayFrom(tcp.AddrPort().Addr().Unmap())
}

// RoundTrip is the time that a byte and its answer take at least, unless that depends on the caller.
func (l *Link) RoundTrip() time.Duration { return 2 * l.config.OneWayDelay }

// BytesToTarget counts what has arrived at the target.
func (l *Link) BytesToTarget() int64 { return l.toTarget.crossed.Load() }

// BytesToCaller counts what has arrived at those who connect here.
func (l *Link) BytesToCaller() int64 { return l.toCaller.crossed.Load() }

// Block drops all packets: connections stay open and nothing passes; new ones hang in connect.
func (l *Link) Block() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.passes:
		l.passes = make(chan struct{})
	default: // it is blocked
	}
	return l.port.Silence()
}

// Cut resets all connections, on both sides, and refuses new ones.
func (l *Link) Cut() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut()
	l.whole = nil
	err := l.port.Refuse()
	l.port.Reset()
	return err
}

// Restore undoes Block and Cut. What waited arrives now.
func (l *Link) Restore() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.passes:
	default:
		close(l.passes)
	}
	if l.whole == nil {
		l.whole, l.cut = context.WithCancel(context.Background())
	}
	return l.port.Listen()
}

// connecting is a context for a new connection, which ends when the link is cut; or nil if that is so.
func (l *Link) connecting() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whole
}

// arrive waits until a time, and then until the link lets through; false if the connection has ended before.
func (l *Link) arrive(ctx context.Context, due time.Time) bool {
	if wait := time.Until(due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	l.mu.Lock()
	passes := l.passes
	l.mu.Unlock()
	select {
	case <-passes:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
