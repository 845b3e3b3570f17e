package main

import (
	"context"
	"net"
	"strconv"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	stockcache "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	stockserver "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// stock is go-control-plane's SnapshotCache and server, set up as its own example is.
type stock struct {
	size        size
	cache       stockcache.SnapshotCache
	clusters    []types.Resource
	assignments []types.Resource
}

// byCluster takes a node's cluster as its group.
type byCluster struct{}

// ID implements cache.NodeHash.
func (byCluster) ID(n *core.Node) string { return n.GetCluster() }

func newStock(s size) (*stock, error) {
	k := &stock{size: s, cache: stockcache.NewSnapshotCache(true, byCluster{}, nil)}
	for i := range s.Services {
		k.clusters = append(k.clusters, clusterOf(i))
		k.assignments = append(k.assignments, assignmentOf(i, s.Endpoints, 1))
	}
	return k, k.publish("1", s.Views)
}

// publish sets the snapshots of some viewpoints. Clusters keep their version, so that a change of endpoints does not send
// them again.
func (k *stock) publish(version string, views int) error {
	for v := range views {
		snapshot := &stockcache.Snapshot{}
		snapshot.Resources[types.Cluster] = stockcache.NewResources("1", k.clusters)
		snapshot.Resources[types.Endpoint] = stockcache.NewResources(version, k.assignments)
		if err := k.cache.SetSnapshot(context.Background(), viewName(v), snapshot); err != nil {
			return err
		}
	}
	return nil
}

func (k *stock) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxConcurrentStreams(1_000_000),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 5 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 30 * time.Second, PermitWithoutStream: true}),
	}
}

func (k *stock) listener(l net.Listener) net.Listener { return l }

func (k *stock) serve(ctx context.Context, g *grpc.Server) {
	discovery.RegisterAggregatedDiscoveryServiceServer(g, stockserver.NewServer(ctx, k.cache, nil))
}

func (k *stock) change(weight int) (time.Time, error) {
	at := time.Now()
	k.assignments[0] = assignmentOf(0, k.size.Endpoints, weight)
	return at, k.publish(strconv.Itoa(weight), k.size.Touch)
}
