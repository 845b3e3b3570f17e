package serve

import (
	"context"
	"net"
	"runtime"
	"sync"
	"weak"

	"google.golang.org/grpc/peer"
)

// Listener makes the connections of a listener known to the server, so that it can close that of a client which does not read:
// ending the stream would leave what waits for the client where it is. gRPC is given the connections as they are, for it reads
// from a bare one without a buffer that lasts.
func (s *Server) Listener(l net.Listener) net.Listener { return &listener{l, &s.connections} }

type listener struct {
	net.Listener
	known *connections
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok && err == nil {
		l.known.add(tcp)
	}
	return c, err
}

// connections are those that are in use, by the address at the other end. It does not keep them in use.
type connections struct {
	mu sync.Mutex
	by map[string]weak.Pointer[net.TCPConn] // under mu
}

func (c *connections) add(conn *net.TCPConn) {
	address := conn.RemoteAddr().String()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]weak.Pointer[net.TCPConn]{}
	}
	c.by[address] = weak.Make(conn)
	runtime.AddCleanup(conn, c.forget, address)
}

// forget drops an address, unless another connection has it by now.
func (c *connections) forget(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by[address].Value() == nil {
		delete(c.by, address)
	}
}

// cut closes the connection of a stream.
func (c *connections) cut(ctx context.Context) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return
	}
	c.mu.Lock()
	conn := c.by[p.Addr.String()].Value()
	c.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // it is being given up on
	}
}
