package serve

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/cache"
)

// Config configures a Server.
type Config struct {
	// Cache is what is served. Required.
	Cache *cache.Cache
	// RegionOf is the region of a cluster in the policies in force. Required.
	RegionOf func(policies.ClusterName) (policies.RegionName, bool)
	// OnViewpoint is told of the viewpoint of each proxy that connects. Default: nothing.
	OnViewpoint func(world.Viewpoint)
	// OnPush is told of each response. It must not block. Default: nothing.
	OnPush func(Push)
	// OnAnswer is told of each answer to a response. It must not block. Default: nothing.
	OnAnswer func(Answer)
	// Patience is how long a client may leave a response unanswered before changes of other types no longer wait for
	// it. Removals always wait. Default 5s.
	Patience time.Duration
	// Log defaults to slog's default.
	Log *slog.Logger
}

// Server serves xDS streams. All its methods may be called from any goroutine.
type Server struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer

	// Set once.
	config   Config
	log      *slog.Logger
	draining chan struct{}
	drain    sync.Once

	mu      sync.Mutex
	proxies map[*proxy]struct{} // under mu
}

// New makes a Server.
func New(config Config) (*Server, error) {
	if config.Cache == nil || config.RegionOf == nil {
		return nil, errors.New("serve: Config.Cache and Config.RegionOf are required")
	}
	if config.OnViewpoint == nil {
		config.OnViewpoint = func(world.Viewpoint) {}
	}
	if config.OnPush == nil {
		config.OnPush = func(Push) {}
	}
	if config.OnAnswer == nil {
		config.OnAnswer = func(Answer) {}
	}
	if config.Patience <= 0 {
		config.Patience = 5 * time.Second
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	return &Server{config: config, log: config.Log, draining: make(chan struct{}), proxies: map[*proxy]struct{}{}}, nil
}

// Register offers the aggregated discovery service.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	discovery.RegisterAggregatedDiscoveryServiceServer(r, s)
}

// Viewpoint reads the viewpoint that a node claims, as for a stream of its own.
func (s *Server) Viewpoint(node *core.Node) (world.Viewpoint, error) {
	return Viewpoint(node, s.config.RegionOf)
}

// Drain ends every stream, and each new one, with Unavailable, so that proxies turn to another replica.
func (s *Server) Drain() { s.drain.Do(func() { close(s.draining) }) }

// StreamAggregatedResources serves state of the world.
func (s *Server) StreamAggregatedResources(stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return s.run(stream.Context(), sotwCodec{stream}, true)
}

// DeltaAggregatedResources serves delta.
func (s *Server) DeltaAggregatedResources(stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return s.run(stream.Context(), deltaCodec{stream}, false)
}

func (s *Server) remember(node *core.Node, v world.Viewpoint, full bool) *proxy {
	p := newProxy(node, v, full)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proxies[p] = struct{}{}
	return p
}

func (s *Server) forget(p *proxy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.proxies, p)
}
