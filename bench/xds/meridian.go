package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
	"github.com/meridian-mesh/meridian/xds/serve"
)

// meridian is our side.
type meridian struct {
	size      size
	cache     *cache.Cache
	server    *serve.Server
	snapshots []*xds.Snapshot
	sweeping  sync.Once
}

func viewpoint(name string) world.Viewpoint {
	return world.Viewpoint{Role: policies.RoleGateway, Region: "r", Cluster: policies.ClusterName(name)}
}

func newMeridian(s size) (*meridian, error) {
	m := &meridian{size: s, cache: &cache.Cache{}}
	var resources []*xds.Resource
	for i := range s.Services {
		c, err := xds.NewResource(xds.TypeCluster, serviceName(i), clusterOf(i))
		if err != nil {
			return nil, err
		}
		a, err := xds.NewResource(xds.TypeEndpoint, serviceName(i), assignmentOf(i, s.Endpoints, 1))
		if err != nil {
			return nil, err
		}
		resources = append(resources, c, a)
	}
	for v := range s.Views { // each has sets of its own, as if viewpoints differed
		m.snapshots = append(m.snapshots, xds.NewSnapshot(viewpoint(viewName(v)).ID(), slices.Clone(resources)))
		m.cache.Publish(m.snapshots[v], time.Now())
	}
	var err error
	m.server, err = serve.New(serve.Config{
		Cache: m.cache, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Viewpoint: func(n *core.Node) (world.Viewpoint, error) { return viewpoint(n.GetCluster()), nil },
	})
	return m, err
}

func (m *meridian) options() []grpc.ServerOption { return m.server.Options() }

func (m *meridian) listener(l net.Listener) net.Listener { return m.server.Listener(l) }

func (m *meridian) serve(ctx context.Context, g *grpc.Server) {
	m.server.Register(g)
	m.sweeping.Do(func() { go func() { _ = m.server.Run(ctx) }() }) // ends with ctx
}

// change makes the resource anew and puts it into each touched viewpoint's snapshot, as xds/build does.
func (m *meridian) change(weight int) (time.Time, error) {
	at := time.Now()
	r, err := xds.NewResource(xds.TypeEndpoint, serviceName(0), assignmentOf(0, m.size.Endpoints, weight))
	if err != nil {
		return at, err
	}
	for v := range m.size.Touch {
		m.snapshots[v] = m.snapshots[v].With([]*xds.Resource{r}, nil)
		m.cache.Publish(m.snapshots[v], at)
	}
	return at, nil
}
