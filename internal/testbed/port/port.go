package port

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/netns"
)

// Port is a net.Listener whose connections are *Conn. Make one with Open.
type Port struct {
	// Set once.
	addr    netip.AddrPort
	reserve *reservation

	// accepting is held by whoever is inside the listener's Accept.
	accepting sync.Mutex

	// Under mu.
	mu       sync.Mutex
	state    state
	listener *net.TCPListener // nil while refusing and after Close
	changed  chan struct{}    // closed, and made anew, with each change of state
	conns    map[*Conn]struct{}
	filler   net.Conn // fills the kernel's queue while silent
}

type state int

const (
	listening state = iota
	silent
	refusing
	closed
)

// Open listens at a loopback address, or at any in a network namespace out of which nothing leads; port 0 takes any that is free. The caller must Close it.
func Open(address netip.AddrPort) (*Port, error) {
	if !address.Addr().IsLoopback() && !netns.Inside() {
		return nil, fmt.Errorf("listen at %s: not a loopback address", address)
	}
	r, addr, err := reserve(address)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", address, err)
	}
	p := &Port{addr: addr, reserve: r, changed: make(chan struct{}), conns: map[*Conn]struct{}{}, state: refusing}
	if err := p.Listen(); err != nil {
		return nil, errors.Join(err, r.release())
	}
	return p, nil
}

// AddrPort is where it listens.
func (p *Port) AddrPort() netip.AddrPort { return p.addr }

// Addr is where it listens.
func (p *Port) Addr() net.Addr { return net.TCPAddrFromAddrPort(p.addr) }

// Accept waits for the next connection, across times of silence and refusal. After Close it returns net.ErrClosed.
func (p *Port) Accept() (net.Conn, error) {
	for {
		l, changed, err := p.current()
		if err != nil {
			return nil, err
		}
		if l == nil {
			<-changed
			continue
		}
		c, err := p.accept(l)
		if err == nil {
			if tracked := p.track(c); tracked != nil {
				return tracked, nil
			}
			continue
		}
		select {
		case <-changed: // that is why it failed
		default:
			return nil, err
		}
	}
}

// accept is the only place that takes connections out of the kernel's queue.
func (p *Port) accept(l *net.TCPListener) (*net.TCPConn, error) {
	p.accepting.Lock()
	defer p.accepting.Unlock()
	return l.AcceptTCP()
}

// current is the listener to accept from, or nil and a channel that is closed when that may have changed.
func (p *Port) current() (*net.TCPListener, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.state {
	case closed:
		return nil, nil, net.ErrClosed
	case listening:
		return p.listener, p.changed, nil
	default:
		return nil, p.changed, nil
	}
}

// track makes a connection one that Reset finds. It drops what came before a refusal was noticed, and what only filled
// the queue.
func (p *Port) track(tcp *net.TCPConn) *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == refusing || p.state == closed {
		abort(tcp)
		return nil
	}
	if p.filler != nil && p.filler.LocalAddr().String() == tcp.RemoteAddr().String() {
		p.filler = nil
		abort(tcp)
		return nil
	}
	c := &Conn{TCPConn: tcp, port: p}
	p.conns[c] = struct{}{}
	return c
}

// Listen accepts connections, after Silence or Refuse.
func (p *Port) Listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.state {
	case closed:
		return fmt.Errorf("listen at %s: %w", p.addr, net.ErrClosed)
	case refusing:
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(p.addr))
		if err != nil {
			return fmt.Errorf("listen at %s: %w", p.addr, err)
		}
		p.listener = l
	case silent:
		if err := p.speak(); err != nil {
			return fmt.Errorf("listen at %s: %w", p.addr, err)
		}
	}
	p.become(listening)
	return nil
}

// speak undoes what Silence did.
func (p *Port) speak() error {
	if p.filler != nil {
		abort(p.filler.(*net.TCPConn))
	}
	if err := p.listener.SetDeadline(time.Time{}); err != nil {
		return err
	}
	return setBacklog(p.listener, backlog)
}

// Refuse stops listening: the kernel refuses connections. Those that are open stay; see Reset.
func (p *Port) Refuse() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == closed || p.state == refusing {
		return nil
	}
	p.become(refusing)
	return p.unlisten()
}

// unlisten closes the listener, under mu.
func (p *Port) unlisten() error {
	if p.filler != nil {
		abort(p.filler.(*net.TCPConn))
		p.filler = nil
	}
	l := p.listener
	p.listener = nil
	if l == nil {
		return nil
	}
	return l.Close()
}

// Silence leaves connection attempts without any answer, as if packets were dropped: a caller hangs in connect. A caller
// that is waiting when Listen comes gets through with its next SYN, a second or more later. Connections that are open
// stay as they are: what is sent over them is up to their owner.
//
// The kernel drops the SYN of whoever comes while a listener's queue is full; so the queue is made as short as can be,
// and filled.
func (p *Port) Silence() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != listening {
		return nil
	}
	p.become(silent)
	if err := p.listener.SetDeadline(time.Unix(1, 0)); err != nil {
		return fmt.Errorf("silence %s: %w", p.addr, err)
	}
	p.accepting.Lock() // nobody is in Accept any more, and nobody goes in while silent
	defer p.accepting.Unlock()
	if err := setBacklog(p.listener, 0); err != nil {
		return fmt.Errorf("silence %s: %w", p.addr, err)
	}
	// A connection through loopback is made within the call. If it isn't, then the queue is full already.
	if c, err := net.DialTimeout("tcp", p.addr.String(), fillTimeout); err == nil {
		p.filler = c
	}
	return nil
}

const fillTimeout = 50 * time.Millisecond

// Reset ends each connection that was accepted and not closed with a RST, as the kernel does for a process that died with
// data unread.
func (p *Port) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reset()
}

// reset works under mu.
func (p *Port) reset() {
	for c := range p.conns {
		abort(c.TCPConn)
	}
	clear(p.conns)
}

// Close stops listening and gives the number back. Open connections stay.
func (p *Port) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.close()
}

// Kill is Close and Reset in one: whoever serves the Port and notices the Close can't end a connection in a milder way
// before.
func (p *Port) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.close()
	p.reset()
	return err
}

// close works under mu.
func (p *Port) close() error {
	if p.state == closed {
		return nil
	}
	p.become(closed)
	return errors.Join(p.unlisten(), p.reserve.release())
}

// become changes the state under mu.
func (p *Port) become(s state) {
	p.state = s
	close(p.changed)
	p.changed = make(chan struct{})
}
