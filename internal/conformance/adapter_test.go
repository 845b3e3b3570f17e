package conformance

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
	"github.com/meridian-mesh/meridian/xds/serve"
)

// adapter does what the suite asks for with the cache of the server under test.
type adapter struct {
	cache *cache.Cache
	// pause is how long a change waits: the suite changes resources right after a client unsubscribes from them, without
	// waiting for the server to have read that.
	pause time.Duration

	mu    sync.Mutex
	state map[string]*xds.Snapshot // under mu: by node
}

func (a *adapter) snapshot(node string) *xds.Snapshot {
	if s := a.state[node]; s != nil {
		return s
	}
	return xds.NewSnapshot(viewpointOf(node).ID(), nil)
}

// publish puts a state in force.
func (a *adapter) publish(node string, s *xds.Snapshot) {
	a.state[node] = s
	a.cache.Publish(s, time.Now())
}

// setState replaces everything a node has.
func (a *adapter) setState(node, version string, resources []*xds.Resource) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := xds.NewSnapshot(viewpointOf(node).ID(), resources)
	for _, t := range s.Types() {
		s = s.WithSet(t, s.Of(t).WithVersion(version))
	}
	a.publish(node, s)
}

// clearState leaves a node nothing.
func (a *adapter) clearState(node string) { a.setState(node, "", nil) }

// put adds a resource of a version, or changes it.
func (a *adapter) put(node string, t xds.Type, name, version string) error {
	pausing := time.NewTimer(a.pause)
	<-pausing.C
	r, err := resource(t, name, version)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.snapshot(node)
	a.publish(node, s.WithSet(t, s.Of(t).With([]*xds.Resource{r}, nil).WithVersion(version)))
	return nil
}

// remove takes a resource out.
func (a *adapter) remove(node string, t xds.Type, name, version string) {
	pausing := time.NewTimer(a.pause)
	<-pausing.C
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.snapshot(node)
	a.publish(node, s.WithSet(t, s.Of(t).With(nil, []string{name}).WithVersion(version)))
}

// resource is one with a version somewhere in its content.
func resource(t xds.Type, name, version string) (*xds.Resource, error) {
	var m proto.Message
	switch t {
	case xds.TypeCluster:
		m = &cluster.Cluster{Name: name, AltStatName: version}
	case xds.TypeEndpoint:
		m = &endpoint.ClusterLoadAssignment{ClusterName: name, NamedEndpoints: map[string]*endpoint.Endpoint{version: {}}}
	case xds.TypeListener:
		m = &listener.Listener{Name: name, StatPrefix: version}
	case xds.TypeRoute:
		m = &route.RouteConfiguration{Name: name, InternalOnlyHeaders: []string{version}}
	default:
		return nil, fmt.Errorf("no resources of type %s here", t)
	}
	bytes, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	return xds.Serialised(t, name, version, bytes), nil
}

// viewpointOf gives each node a viewpoint of its own.
func viewpointOf(node string) world.Viewpoint {
	return world.Viewpoint{Role: policies.RoleGateway, Region: "conformance", Cluster: policies.ClusterName(node)}
}

// call answers one of the suite's five calls.
type call func(a *adapter, in *dynamicpb.Message) error

// register offers the suite's adapter.Adapter service.
func (a *adapter) register(g *grpc.Server) {
	desc := grpc.ServiceDesc{ServiceName: "adapter.Adapter", HandlerType: (*any)(nil)}
	for name, m := range methods {
		desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: name, Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := dynamicpb.NewMessage(m.request())
			if err := decode(in); err != nil {
				return nil, err
			}
			if err := m.call(a, in); err != nil {
				return nil, err
			}
			return m.done(), nil
		}})
	}
	g.RegisterService(&desc, struct{}{})
}

func text(m *dynamicpb.Message, field string) string {
	return m.Get(m.Descriptor().Fields().ByName(protoreflect.Name(field))).String()
}

// harness runs the server under test and the adapter, and gives back their addresses.
func harness(t *testing.T, pause time.Duration) (server, control string) {
	t.Helper()
	a := &adapter{cache: &cache.Cache{}, pause: pause, state: map[string]*xds.Snapshot{}}
	s, err := serve.New(serve.Config{
		Cache: a.cache, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), CanaryShare: 1,
		Viewpoint: func(n *core.Node) (world.Viewpoint, error) { return viewpointOf(n.GetId()), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	swept := make(chan error, 1)
	go func() { swept <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-swept; err != nil {
			t.Error(err)
		}
	})
	under, beside := grpc.NewServer(s.Options()...), grpc.NewServer()
	s.Register(under)
	a.register(beside)
	return listen(t, under), listen(t, beside)
}

// listen serves until the test ends.
func listen(t *testing.T, g *grpc.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(l) }()
	t.Cleanup(func() {
		g.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}
