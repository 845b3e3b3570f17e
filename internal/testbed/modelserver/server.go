package modelserver

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/meridian-mesh/meridian/internal/testbed/port"
)

// Server is one model server. Make one with New, then Run it.
type Server struct {
	// Set once.
	config  Config
	port    *port.Port
	engine  *engine
	metrics *metrics

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
		config: c, port: p, engine: newEngine(c),
		faultChanged: make(chan struct{}), requests: ring{keep: c.Keep},
	}
	s.metrics = newMetrics(c, s.engine)
	return s, nil
}

// Run serves until ctx ends, which closes all connections, or until Kill. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var engine sync.WaitGroup
	engine.Go(func() { s.engine.run(ctx) })
	err := s.port.ServeHTTP(ctx, s.handler())
	cancel()
	engine.Wait()
	return err
}

// Addr is where it listens.
func (s *Server) Addr() netip.AddrPort { return s.port.AddrPort() }

// Name is Config.Name.
func (s *Server) Name() string { return s.config.Name }

// Kill resets all connections and stops listening at once, as if the process had got a SIGKILL. Run returns then.
func (s *Server) Kill() error { return s.port.Kill() }

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
