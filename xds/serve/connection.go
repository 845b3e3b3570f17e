package serve

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc/peer"
)

// Listener makes the connections of a listener known to the server, so that it can close that of a client which does not read:
// ending the stream would leave what waits for the client where it is.
func (s *Server) Listener(l net.Listener) net.Listener { return &listener{l, s} }

type listener struct {
	net.Listener
	server *Server
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	known := &connection{Conn: c, server: l.server}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	l.server.conns[c.RemoteAddr().String()] = known
	return known, nil
}

// connection is a client's connection.
type connection struct {
	net.Conn
	server *Server
	once   sync.Once
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.once.Do(func() {
		c.server.mu.Lock()
		defer c.server.mu.Unlock()
		if address := c.RemoteAddr().String(); c.server.conns[address] == c {
			delete(c.server.conns, address)
		}
	})
	return c.Conn.Close()
}

// cut closes the connection of a stream.
func (s *Server) cut(ctx context.Context) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return
	}
	s.mu.Lock()
	c := s.conns[p.Addr.String()]
	s.mu.Unlock()
	if c != nil {
		_ = c.Close() // it is being given up on
	}
}
