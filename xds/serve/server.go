package serve

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/cache"
)

// Config configures a Server.
type Config struct {
	// Cache is what is served. Required.
	Cache *cache.Cache
	// Viewpoint reads the viewpoint that a node claims. Default: func Viewpoint with RegionOf.
	Viewpoint func(*core.Node) (world.Viewpoint, error)
	// RegionOf is the region of a cluster in the policies in force. Required where Viewpoint is not given.
	RegionOf func(policies.ClusterName) (policies.RegionName, bool)
	// Authenticate says who the peer of a stream is, by a name that limits go by, and whether it may have the viewpoint that
	// it claims; the error has a gRPC status. Default: everyone may, and is who its node says it is.
	Authenticate func(ctx context.Context, claimed world.Viewpoint) (identity string, err error)
	// OnViewpoint is told of the viewpoint of each proxy that connects. Default: nothing.
	OnViewpoint func(world.Viewpoint)
	// OnQuarantine is told of configuration that a viewpoint's proxies refused. It must not block. Default: nothing.
	OnQuarantine func(world.ViewpointID, Quarantine)
	// OnPush is told of each response. It must not block. Default: nothing.
	OnPush func(Push)
	// OnAnswer is told of each answer to a response. It must not block. Default: nothing.
	OnAnswer func(Answer)
	// OnRejected is told of each stream that is turned away or cut off. It must not block. Default: nothing.
	OnRejected func(Rejection)
	// Patience is how long a client may leave a response unanswered before changes of other types no longer wait for
	// it. Removals always wait. Default 5s.
	Patience time.Duration
	// SendTimeout is how long a client may take to read a response before it is cut off. Default 30s.
	SendTimeout time.Duration
	// CanaryShare is the part of a viewpoint's proxies that are given new configuration first, at least one. Changes of
	// endpoints alone go to all at once. 1 or more: all are given everything at once. Default 0.05.
	CanaryShare float64
	// CanaryTimeout is how long the others wait for the canaries' answers. Default 1s.
	CanaryTimeout time.Duration
	// MaxConnectionAge is when a connection is asked to go, within a tenth, so that load spreads over replicas. Default 30m.
	MaxConnectionAge time.Duration
	// Limits bound what one client may use.
	Limits Limits
	// Origin names this replica to clients. Default "meridian".
	Origin string
	// Log defaults to slog's default.
	Log *slog.Logger
}

// Server serves xDS streams. All its methods may be called from any goroutine.
type Server struct {
	// Set once.
	config   Config
	log      *slog.Logger
	names    *nameTable
	draining chan struct{}
	drain    sync.Once

	mu      sync.Mutex
	streams map[*stream]struct{}         // under mu
	perID   map[string]int               // under mu: streams by identity
	groups  map[world.ViewpointID]*group // under mu

	connections connections // locks itself

	// Atomic.
	pushing atomic.Int64 // streams that have a newer snapshot waiting
}

// New makes a Server.
func New(config Config) (*Server, error) {
	if config.Cache == nil || config.RegionOf == nil && config.Viewpoint == nil {
		return nil, errors.New("serve: Config.Cache and Config.RegionOf are required")
	}
	config.fill()
	return &Server{config: config, log: config.Log, names: newNameTable(), draining: make(chan struct{}),
		streams: map[*stream]struct{}{}, perID: map[string]int{}, groups: map[world.ViewpointID]*group{}}, nil
}

// fill puts defaults where nothing is said.
func (c *Config) fill() {
	if c.Viewpoint == nil {
		regionOf := c.RegionOf
		c.Viewpoint = func(node *core.Node) (world.Viewpoint, error) { return Viewpoint(node, regionOf) }
	}
	listen(&c.OnViewpoint)
	listen(&c.OnPush)
	listen(&c.OnAnswer)
	listen(&c.OnRejected)
	orDefault(&c.Patience, 5*time.Second)
	orDefault(&c.SendTimeout, 30*time.Second)
	orDefault(&c.CanaryShare, 0.05)
	orDefault(&c.CanaryTimeout, time.Second)
	orDefault(&c.MaxConnectionAge, 30*time.Minute)
	c.Limits.fill()
	if c.OnQuarantine == nil {
		c.OnQuarantine = func(world.ViewpointID, Quarantine) {}
	}
	if c.Origin == "" {
		c.Origin = "meridian"
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

// listen lets a func that is not given be called.
func listen[T any](f *func(T)) {
	if *f == nil {
		*f = func(T) {}
	}
}

func orDefault[T int | float64 | time.Duration](v *T, fallback T) {
	if *v <= 0 {
		*v = fallback
	}
}

// The flow-control windows of a client's requests. Fixed ones spare the pings by which gRPC would measure each connection.
const (
	streamWindow     = 1 << 18
	connectionWindow = 1 << 20
)

// Options are what a gRPC server needs to be told to serve this: the codec that shares serialised resources, limits, and the
// age of connections.
func (s *Server) Options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(s.config.Limits.MessageBytes),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.MaxConcurrentStreams(uint32(s.config.Limits.StreamsPerConnection)),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second,
			MaxConnectionAge: s.config.MaxConnectionAge, MaxConnectionAgeGrace: 5 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	}
}

// Viewpoint reads the viewpoint that a node claims, as for a stream of its own.
func (s *Server) Viewpoint(node *core.Node) (world.Viewpoint, error) { return s.config.Viewpoint(node) }

// Drain ends every stream, and each new one, with Unavailable, so that proxies turn to another replica.
func (s *Server) Drain() { s.drain.Do(func() { close(s.draining) }) }

// Run looks after what only time moves, for all streams at once, until ctx ends: answers that do not come, lifetimes to renew,
// canaries that say nothing, clients that do not read. It returns nil then.
func (s *Server) Run(ctx context.Context) error {
	tick := time.NewTicker(max(min(250*time.Millisecond, s.config.Patience/4, s.config.CanaryTimeout/4, s.config.SendTimeout/4), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			s.sweep(now)
		}
	}
}

// sweep sees to every stream and group.
func (s *Server) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		st.sweep(now)
	}
	for _, g := range s.groups {
		g.tick(now)
	}
}

// Pending counts the streams that have a newer snapshot waiting for them.
func (s *Server) Pending() int { return int(s.pushing.Load()) }
