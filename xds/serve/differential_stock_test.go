package serve_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	runtimeservice "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	stockcache "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	stockserver "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
	"github.com/meridian-mesh/meridian/xds/serve"
)

// node is what both clients are, and viewpoint is what our server takes it for.
var (
	node      = &core.Node{Id: "proxy", Cluster: "c"}
	viewpoint = world.Viewpoint{Role: policies.RoleGateway, Region: "r", Cluster: "c"}
)

// stock is a cache of go-control-plane.
type stock interface {
	stockcache.Cache
	// publish changes resources.
	publish(changes []change) error
	// forgets says that a client of the state of the world must not say on a new stream which version it holds.
	forgets() bool
}

// snapshotStock is a SnapshotCache.
type snapshotStock struct {
	stockcache.SnapshotCache
	version   int
	resources map[xds.Type]map[string]types.Resource
}

// newSnapshotStock makes one that answers who asks for some of the resources too: that is what "ads" would rule out.
func newSnapshotStock() stock {
	return &snapshotStock{SnapshotCache: stockcache.NewSnapshotCache(false, stockcache.IDHash{}, nil), resources: map[xds.Type]map[string]types.Resource{}}
}

func (s *snapshotStock) publish(changes []change) error {
	for _, c := range changes {
		if s.resources[c.typ] == nil {
			s.resources[c.typ] = map[string]types.Resource{}
		}
		delete(s.resources[c.typ], c.name)
		if c.content > 0 {
			s.resources[c.typ][c.name] = messageOf(c.typ, c.name, c.content)
		}
	}
	all := map[string][]types.Resource{}
	for typ, named := range s.resources {
		for _, m := range named {
			all[string(typ)] = append(all[string(typ)], m)
		}
	}
	s.version++
	snapshot, err := stockcache.NewSnapshot(strconv.Itoa(s.version), all)
	if err != nil {
		return err
	}
	return s.SetSnapshot(context.Background(), node.GetId(), snapshot)
}

func (s *snapshotStock) forgets() bool { return false }

// linearStock is a LinearCache for each type.
type linearStock struct {
	stockcache.MuxCache
	linear map[xds.Type]*stockcache.LinearCache
}

func newLinearStock() stock {
	s := &linearStock{linear: map[xds.Type]*stockcache.LinearCache{}}
	s.Classify = func(r *stockcache.Request) string { return r.GetTypeUrl() }
	s.ClassifyDelta = func(r *stockcache.DeltaRequest) string { return r.GetTypeUrl() }
	s.Caches = map[string]stockcache.Cache{}
	for _, t := range append([]xds.Type{fenceType}, compared...) {
		s.linear[t] = stockcache.NewLinearCache(string(t))
		s.Caches[string(t)] = s.linear[t]
	}
	return s
}

func (s *linearStock) publish(changes []change) error {
	for typ, linear := range s.linear {
		put, gone := map[string]types.Resource{}, []string(nil)
		for _, c := range changes {
			switch {
			case c.typ != typ:
			case c.content > 0:
				put[c.name] = messageOf(c.typ, c.name, c.content)
			default:
				gone = append(gone, c.name)
			}
		}
		if len(put)+len(gone) == 0 {
			continue
		}
		if err := linear.UpdateResources(put, gone); err != nil {
			return err
		}
	}
	return nil
}

// forgets: on a new stream a LinearCache does not answer a client that says a version and asks for clusters or listeners that
// are all gone, so that the client would keep them.
func (s *linearStock) forgets() bool { return true }

// serveStock serves one of go-control-plane's caches. Its "ordered" mode keeps what a cache answers in order, which the
// clients' way of resting relies on.
func serveStock(t *rapid.T, s stock) discovery.AggregatedDiscoveryServiceClient {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	g := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(g, stockserver.NewServer(ctx, s, nil, sotw.WithOrderedADS()))
	return connect(t, g)
}

// serveOurs serves our cache.
func serveOurs(t *rapid.T, c *cache.Cache) discovery.AggregatedDiscoveryServiceClient {
	s, err := serve.New(serve.Config{Cache: c, CanaryShare: 1, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Viewpoint: func(*core.Node) (world.Viewpoint, error) { return viewpoint, nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	g := grpc.NewServer(s.Options()...)
	s.Register(g)
	return connect(t, g)
}

// connect runs a server until the test ends, and connects to it.
func connect(t *rapid.T, g *grpc.Server) discovery.AggregatedDiscoveryServiceClient {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close() // it is over
		g.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return discovery.NewAggregatedDiscoveryServiceClient(conn)
}

// messageOf is a resource of a type, with a content somewhere in it.
func messageOf(t xds.Type, name string, content int) types.Resource {
	text := strings.Repeat("x", content)
	switch t {
	case xds.TypeCluster:
		return &cluster.Cluster{Name: name, AltStatName: text}
	case xds.TypeEndpoint:
		return &endpoint.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpoint.LocalityLbEndpoints{{Locality: &core.Locality{Region: text}}}}
	case xds.TypeListener:
		return &listener.Listener{Name: name, StatPrefix: text}
	case xds.TypeRoute:
		return &route.RouteConfiguration{Name: name, InternalOnlyHeaders: []string{text}}
	}
	return &runtimeservice.Runtime{Name: name}
}
