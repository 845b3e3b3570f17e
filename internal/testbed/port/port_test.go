package port_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/meridian-mesh/meridian/internal/testbed/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open is a Port that greets each connection with "hello" and keeps it open until its caller ends it.
func open(t *testing.T, address string) *port.Port {
	t.Helper()
	p, err := port.Open(netip.MustParseAddrPort(address))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := p.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("accept: %v", err)
				}
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.WriteString(c, "hello")
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return p
}

// greeted connects and reads the greeting.
func greeted(t *testing.T, p *port.Port) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", p.AddrPort().String(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
		t.Fatalf("no greeting: %v", err)
	}
	return c
}

// reset fails the test if a connection does not end with a RST.
func reset(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v, not a reset", err)
	}
}

// refused fails the test if a connection is not refused.
func refused(t *testing.T, p *port.Port) {
	t.Helper()
	c, err := net.DialTimeout("tcp", p.AddrPort().String(), 10*time.Second)
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connecting gave %v, not refused", err)
	}
}

func TestOpenWantsLoopback(t *testing.T) {
	if _, err := port.Open(netip.MustParseAddrPort("0.0.0.0:0")); err == nil {
		t.Error("opened a port to the network")
	}
}

func TestRefuseAndListenAgain(t *testing.T) {
	for _, address := range []string{"127.0.0.7:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			p := open(t, address)
			for range 3 {
				kept := greeted(t, p)
				if err := p.Refuse(); err != nil {
					t.Fatal(err)
				}
				refused(t, p)
				p.Reset()
				reset(t, kept)
				if err := p.Listen(); err != nil {
					t.Fatal(err)
				}
			}
			greeted(t, p)
		})
	}
}

func TestANumberIsHeldWhileRefusing(t *testing.T) {
	p := open(t, "127.0.0.1:0")
	if err := p.Refuse(); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", p.AddrPort().String())
	if err == nil {
		c.Close()
		t.Error("connected")
	}
	for range 200 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if l.Addr().String() == p.AddrPort().String() {
			t.Fatal("the kernel gave the number away")
		}
	}
}

func TestSilence(t *testing.T) {
	p := open(t, "127.0.0.1:0")
	for range 2 {
		kept := greeted(t, p)
		if err := p.Silence(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		c, err := new(net.Dialer).DialContext(ctx, "tcp", p.AddrPort().String())
		cancel()
		if err == nil {
			c.Close()
			t.Fatal("connected to a silent port")
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			var timeout net.Error
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Fatalf("connecting gave %v, not silence", err)
			}
		}
		if err := p.Listen(); err != nil {
			t.Fatal(err)
		}
		greeted(t, p)
		if _, err := io.WriteString(kept, "still open"); err != nil {
			t.Errorf("a connection from before: %v", err)
		}
	}
}

func TestSilentThenRefusing(t *testing.T) {
	p := open(t, "127.0.0.1:0")
	if err := p.Silence(); err != nil {
		t.Fatal(err)
	}
	if err := p.Refuse(); err != nil {
		t.Fatal(err)
	}
	refused(t, p)
	if err := p.Listen(); err != nil {
		t.Fatal(err)
	}
	greeted(t, p)
}

func TestAClosedPortStaysClosed(t *testing.T) {
	p := open(t, "127.0.0.1:0")
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Listen(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("listening after Close gave %v, want net.ErrClosed", err)
	}
	refused(t, p)
}

func TestKill(t *testing.T) {
	p := open(t, "127.0.0.1:0")
	c := greeted(t, p)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	reset(t, c)
	refused(t, p)
}

func TestServeHTTP(t *testing.T) {
	p, err := port.Open(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	started, left := make(chan struct{}), false
	ended := make(chan error)
	go func() {
		ended <- p.ServeHTTP(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/abort" {
				port.AbortHTTP(r)
			}
			close(started)
			<-r.Context().Done()
			left = true
			panic(http.ErrAbortHandler)
		}))
	}()
	url := "http://" + p.AddrPort().String()
	if _, err := http.Get(url + "/abort"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an aborted request ended with %v, not a reset", err)
	}
	answered := make(chan error)
	go func() {
		_, err := http.Get(url)
		answered <- err
	}()
	<-started
	cancel()
	if err := <-ended; err != nil || !left {
		t.Errorf("ended with %v; the handler had left: %v", err, left)
	}
	if err := <-answered; err == nil {
		t.Error("a request that was cut off had an answer")
	}
	refused(t, p)
}
