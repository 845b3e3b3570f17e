package modelserver

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/port"
)

// Server is one model server. Make one with New, then Run it.
type Server struct {
	// Set once.
	config  Config
	port    *port.Port
	engine  *engine
	metrics *metrics
	killed  chan struct{}
	kill    sync.Once

	// Atomic.
	served   atomic.Int64
	received atomic.Int64
	lastID   atomic.Int64

	// Under mu.
	mu           sync.Mutex
	fault        Fault
	faultChanged chan struct{}

	requests ring // guards itself
}

// New listens; Run answers. The caller must Run the Server or Kill it.
func New(c Config) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	p, err := port.Open(c.Address)
	if err != nil {
		return nil, err
	}
	s := &Server{
		config: c, port: p, engine: newEngine(c), killed: make(chan struct{}),
		faultChanged: make(chan struct{}), requests: ring{keep: c.Keep},
	}
	s.metrics = newMetrics(c, s.engine)
	return s, nil
}

// Run serves until ctx ends, which closes all connections, or until Kill. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { s.engine.run(ctx) })
	server := s.http(ctx, &running)
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.port) }()
	var err error
	select {
	case <-ctx.Done():
	case <-s.killed:
	case err = <-served:
		served <- nil
	}
	cancel()
	// Closing the port ends Serve; what it started meanwhile is in the count of those running.
	err = errors.Join(unlessClosed(err), s.port.Close(), server.Close(), unlessClosed(<-served))
	s.port.Reset()
	running.Wait()
	return err
}

// http is the server whose connections are counted as running until they have ended.
func (s *Server) http(ctx context.Context, running *sync.WaitGroup) *http.Server {
	return &http.Server{
		Handler:           s.handler(),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // resets and hung-up callers are its daily bread
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				running.Add(1)
			case http.StateClosed:
				running.Done()
			}
		},
	}
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// reset ends a request with a RST of its connection, and the handler with it.
func reset(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*port.Conn); ok {
		c.Reset()
	}
	panic(http.ErrAbortHandler)
}

func unlessClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Addr is where it listens.
func (s *Server) Addr() netip.AddrPort { return s.port.AddrPort() }

// Name is Config.Name.
func (s *Server) Name() string { return s.config.Name }

// Kill resets all connections and stops listening at once, as if the process had got a SIGKILL. Run returns then.
func (s *Server) Kill() error {
	err := s.port.Close()
	s.port.Reset()
	s.kill.Do(func() { close(s.killed) })
	return err
}

// Served counts the requests for inference that were answered in full with success.
func (s *Server) Served() int64 { return s.served.Load() }

// Bytes counts what was received in the bodies of requests for inference, those that failed included: while it does not
// move, no byte of a prompt has come here.
func (s *Server) Bytes() int64 { return s.received.Load() }

// Running and Waiting are the lengths of the engine's two lists: what vllm:num_requests_running and _waiting say.
func (s *Server) Running() int { return s.engine.stats().running }

// Waiting is the number of requests in the queue.
func (s *Server) Waiting() int { return s.engine.stats().waiting }

// Requests are the newest Config.Keep requests for inference, the oldest first.
func (s *Server) Requests() []Request { return s.requests.list() }
