package dataserver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/meridian-mesh/meridian/internal/testbed/port"
)

// Protocol is what a Server speaks.
type Protocol string

const (
	// HTTP is HTTP/1.1: any path echoes, /health answers 200 or 503. The header x-served-by has the name.
	HTTP Protocol = "http"
	// GRPC is the unary method EchoMethod, and the standard health service. The header x-served-by has the name.
	GRPC Protocol = "grpc"
	// TCP greets with the name and echoes the rest. Being unhealthy can't be told over it: it refuses connections then.
	TCP Protocol = "tcp"
)

// Config configures a Server. All is required.
type Config struct {
	// Address is a loopback address; port 0 takes any that is free.
	Address  netip.AddrPort
	Name     string
	Protocol Protocol
}

// Server is one server. Make one with New, then Run it.
type Server struct {
	// Set once.
	config Config
	port   *port.Port
	speak  func(context.Context) error // serves the protocol, until ctx ends or the port is closed
	grpc   *grpcServer                 // nil unless that is the protocol

	// Atomic.
	served, received atomic.Int64
	unhealthy        atomic.Bool
}

// New listens; Run answers. The caller must Run the Server or Kill it.
func New(c Config) (*Server, error) {
	if c.Name == "" {
		return nil, errors.New("data server: Config.Name is required")
	}
	s := &Server{config: c}
	switch c.Protocol {
	case HTTP:
		s.speak = func(ctx context.Context) error { return s.port.ServeHTTP(ctx, s.httpHandler()) }
	case GRPC:
		s.grpc = newGRPC(s)
		s.speak = s.grpc.run
	case TCP:
		s.speak = s.runTCP
	default:
		return nil, fmt.Errorf("data server %s: Config.Protocol is %q, not http, grpc or tcp", c.Name, c.Protocol)
	}
	var err error
	if s.port, err = port.Open(c.Address); err != nil {
		return nil, err
	}
	return s, nil
}

// Run serves until ctx ends or until Kill. It may be called once.
func (s *Server) Run(ctx context.Context) error { return s.speak(ctx) }

// Addr is where it listens.
func (s *Server) Addr() netip.AddrPort { return s.port.AddrPort() }

// Name is Config.Name.
func (s *Server) Name() string { return s.config.Name }

// Kill resets all connections and stops listening at once, as if the process had got a SIGKILL. Run returns then.
func (s *Server) Kill() error { return s.port.Kill() }

// Refuse resets all connections and refuses new ones, as if the process had crashed, until it is called with false.
func (s *Server) Refuse(refuse bool) error {
	if !refuse {
		return s.port.Listen()
	}
	err := s.port.Refuse()
	s.port.Reset()
	return err
}

// SetHealthy changes what health checks are told. It is healthy at first.
func (s *Server) SetHealthy(healthy bool) error {
	s.unhealthy.Store(!healthy)
	switch s.config.Protocol {
	case GRPC:
		s.grpc.setHealthy(healthy)
	case TCP:
		return s.Refuse(!healthy)
	}
	return nil
}

// Served counts what was answered: requests, calls, or connections over which something came. Health checks are none.
func (s *Server) Served() int64 { return s.served.Load() }

// Bytes counts what came in bodies, messages or connections. Health checks are not in it.
func (s *Server) Bytes() int64 { return s.received.Load() }
