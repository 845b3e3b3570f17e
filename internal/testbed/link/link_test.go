package link_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/meridian-mesh/meridian/internal/testbed/link"
	"github.com/meridian-mesh/meridian/internal/testbed/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// target is a server that does something with each connection, until the test ends.
type target struct {
	*port.Port
	conns atomic.Int64
}

func serve(t testing.TB, handle func(*net.TCPConn)) *target {
	t.Helper()
	p, err := port.Open(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	s := &target{Port: p}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := p.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			running.Go(func() {
				defer c.Close()
				handle(c.(*port.Conn).TCPConn)
			})
		}
	})
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		running.Wait()
	})
	return s
}

func echo(c *net.TCPConn) { _, _ = io.Copy(c, c) }

func start(t testing.TB, to *target, c link.Config) *link.Link {
	t.Helper()
	c.Listen, c.Target = netip.MustParseAddrPort("127.0.0.1:0"), to.AddrPort()
	l, err := link.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return l
}

func connect(t testing.TB, l *link.Link) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", l.Addr().String(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// ping sends a byte and waits for it to come back.
func ping(t testing.TB, c net.Conn) time.Duration {
	t.Helper()
	start := time.Now()
	if _, err := c.Write([]byte{7}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

func TestDelay(t *testing.T) {
	l := start(t, serve(t, echo), link.Config{OneWayDelay: 20 * time.Millisecond})
	c := connect(t, l)
	if took := ping(t, c); took < 2*l.RoundTrip()-5*time.Millisecond { // less what passed between accept and write
		t.Errorf("the first byte took %v, want a round trip for the handshake and one for itself, of %v each", took, l.RoundTrip())
	}
	for range 3 {
		if took := ping(t, c); took < l.RoundTrip() {
			t.Errorf("took %v, want %v at least", took, l.RoundTrip())
		}
	}
}

func TestBytesArriveInOrder(t *testing.T) {
	for name, c := range map[string]link.Config{
		"without delay":  {},
		"with delay":     {OneWayDelay: 5 * time.Millisecond},
		"with jitter":    {OneWayDelay: time.Millisecond, Jitter: 10 * time.Millisecond},
		"with bandwidth": {OneWayDelay: time.Millisecond, BytesPerSecond: 50 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t, serve(t, echo), c)
			sent := make([]byte, 6<<20)
			random := rand.NewChaCha8([32]byte{1})
			_, _ = random.Read(sent)
			conn := connect(t, l)
			go func() {
				_, _ = conn.Write(sent)
				_ = conn.CloseWrite()
			}()
			got, err := io.ReadAll(conn)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("got %d bytes, %v; want the %d sent", len(got), err, len(sent))
			}
			if to, from := l.BytesToTarget(), l.BytesToCaller(); to != int64(len(sent)) || from != to {
				t.Errorf("counted %d to the target and %d back, want %d", to, from, len(sent))
			}
		})
	}
}

func TestBandwidth(t *testing.T) {
	l := start(t, serve(t, echo), link.Config{BytesPerSecond: 10 << 20})
	c := connect(t, l)
	began := time.Now()
	go func() {
		_, _ = c.Write(make([]byte, 1<<20))
		_ = c.CloseWrite()
	}()
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("1 MiB at 10 MiB a second took %v", took)
	}
}

func TestHalfClose(t *testing.T) {
	l := start(t, serve(t, func(c *net.TCPConn) {
		all, err := io.ReadAll(c)
		if err != nil {
			return
		}
		slices.Reverse(all)
		_, _ = c.Write(all)
	}), link.Config{OneWayDelay: 5 * time.Millisecond})
	c := connect(t, l)
	if _, err := io.WriteString(c, "abc"); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || string(got) != "cba" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestResetsTravel(t *testing.T) {
	ended := make(chan error, 1)
	l := start(t, serve(t, func(c *net.TCPConn) {
		_, err := io.Copy(c, c)
		ended <- err
	}), link.Config{OneWayDelay: 5 * time.Millisecond})
	c := connect(t, l)
	ping(t, c)
	if err := c.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := <-ended; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the target saw %v, want a reset", err)
	}
}

func TestATargetThatRefuses(t *testing.T) {
	s := serve(t, echo)
	l := start(t, s, link.Config{OneWayDelay: 5 * time.Millisecond})
	if err := s.Refuse(); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, l).Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
}

func TestBlock(t *testing.T) {
	s := serve(t, echo)
	blocked := start(t, s, link.Config{OneWayDelay: time.Millisecond})
	control := start(t, s, link.Config{OneWayDelay: 20 * time.Millisecond})
	old, other := connect(t, blocked), connect(t, control)
	for range 2 {
		ping(t, old)
		ping(t, other)
		conns, to, from := s.conns.Load(), blocked.BytesToTarget(), blocked.BytesToCaller()
		for range 2 { // twice is as once
			if err := blocked.Block(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := old.Write([]byte{9}); err != nil {
			t.Fatal(err)
		}
		if c, err := net.DialTimeout("tcp", blocked.Addr().String(), 50*time.Millisecond); err == nil {
			c.Close()
			t.Error("connected to a blocked link")
		}
		ping(t, other) // takes much longer than a byte over the other link would
		if s.conns.Load() != conns || blocked.BytesToTarget() != to || blocked.BytesToCaller() != from {
			t.Errorf("crossed while blocked: %d connections, %d bytes there, %d back",
				s.conns.Load()-conns, blocked.BytesToTarget()-to, blocked.BytesToCaller()-from)
		}
		if err := blocked.Restore(); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 1)
		if _, err := io.ReadFull(old, got); err != nil || got[0] != 9 {
			t.Errorf("what waited came as %v, %v", got, err)
		}
	}
	ping(t, connect(t, blocked))
}

func TestCut(t *testing.T) {
	ended := make(chan error, 1)
	s := serve(t, func(c *net.TCPConn) {
		_, err := io.Copy(c, c)
		ended <- err
	})
	l := start(t, s, link.Config{OneWayDelay: time.Millisecond})
	for range 2 {
		c := connect(t, l)
		ping(t, c)
		if err := l.Cut(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the caller saw %v, want a reset", err)
		}
		if err := <-ended; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the target saw %v, want a reset", err)
		}
		if _, err := net.Dial("tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("connecting gave %v, want it refused", err)
		}
		if err := l.Restore(); err != nil {
			t.Fatal(err)
		}
	}
	ping(t, connect(t, l))
}

func TestEndingWhileBlocked(t *testing.T) {
	l := start(t, serve(t, echo), link.Config{OneWayDelay: time.Millisecond})
	c := connect(t, l)
	ping(t, c)
	if err := l.Block(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	} // and the link ends with the test, with no goroutine left
}

func TestConfigIsChecked(t *testing.T) {
	loopback, far := netip.MustParseAddrPort("127.0.0.1:0"), netip.MustParseAddrPort("127.0.0.1:80")
	for name, c := range map[string]link.Config{
		"no target":       {Listen: loopback},
		"no port":         {Listen: loopback, Target: loopback},
		"negative delay":  {Listen: loopback, Target: far, OneWayDelay: -1},
		"negative jitter": {Listen: loopback, Target: far, Jitter: -1},
		"an open address": {Listen: netip.MustParseAddrPort("0.0.0.0:0"), Target: far},
	} {
		if _, err := link.New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// How much more than its delay a link adds.
func BenchmarkDelay(b *testing.B) {
	for _, delay := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 40 * time.Millisecond} {
		b.Run(delay.String(), func(b *testing.B) {
			l := start(b, serve(b, echo), link.Config{OneWayDelay: delay})
			c := connect(b, l)
			ping(b, c)
			var over []float64
			for b.Loop() {
				over = append(over, float64(ping(b, c)-l.RoundTrip())/float64(time.Millisecond))
			}
			slices.Sort(over)
			b.ReportMetric(over[len(over)/2], "ms-over-p50")
			b.ReportMetric(over[len(over)*99/100], "ms-over-p99")
		})
	}
}

// How much a link without delay carries.
func BenchmarkThroughput(b *testing.B) {
	l := start(b, serve(b, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }), link.Config{})
	c := connect(b, l)
	chunk := make([]byte, 64<<10)
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
}
