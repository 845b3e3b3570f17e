package port

import "net"

// Conn is a connection that a Port accepted.
type Conn struct {
	*net.TCPConn
	port *Port // set once
}

// Close closes it.
func (c *Conn) Close() error {
	c.forget()
	return c.TCPConn.Close()
}

// Reset ends it with a RST.
func (c *Conn) Reset() {
	c.forget()
	abort(c.TCPConn)
}

func (c *Conn) forget() {
	c.port.mu.Lock()
	defer c.port.mu.Unlock()
	delete(c.port.conns, c)
}

// abort closes a connection with a RST. What may fail, fails only where the connection is closed already.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
