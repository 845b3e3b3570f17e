package dataserver

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

func (s *Server) runTCP(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.Kill() })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		c, err := s.port.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return errors.Join(err, s.Kill())
		}
		conns.Go(func() { s.echoTCP(c) })
	}
}

// echoTCP ends with the connection: that a caller breaks off is no error.
func (s *Server) echoTCP(c net.Conn) {
	defer c.Close()
	if _, err := io.WriteString(c, s.config.Name+"\n"); err != nil {
		return
	}
	buffer := make([]byte, 32<<10)
	for first := true; ; first = false {
		n, err := c.Read(buffer)
		s.received.Add(int64(n))
		if err != nil {
			return
		}
		if first {
			s.served.Add(1)
		}
		if _, err := c.Write(buffer[:n]); err != nil {
			return
		}
	}
}
