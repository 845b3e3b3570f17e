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
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	stockserver "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// stock is go-control-plane's SnapshotCache and server, set up as its own example is.
type stock struct {
	size      size
	cache     stockcache.SnapshotCache
	resources map[resource.Type][]types.Resource
}

// byCluster takes a node's cluster as its group.
type byCluster struct{}

// ID implements cache.NodeHash.
func (byCluster) ID(n *core.Node) string { return n.GetCluster() }

func newStock(s size) (*stock, error) {
	k := &stock{size: s, cache: stockcache.NewSnapshotCache(true, byCluster{}, nil), resources: map[resource.Type][]types.Resource{}}
	for i := range s.Services {
		k.resources[resource.ClusterType] = append(k.resources[resource.ClusterType], clusterOf(i))
		k.resources[resource.EndpointType] = append(k.resources[resource.EndpointType], assignmentOf(i, s.Endpoints, 1))
	}
	return k, k.publish("0", s.Views)
}

// publish sets the snapshots of some viewpoints.
func (k *stock) publish(version string, views int) error {
	for v := range views {
		snapshot, err := stockcache.NewSnapshot(version, k.resources)
		if err != nil {
			return err
		}
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
	k.resources[resource.EndpointType][0] = assignmentOf(0, k.size.Endpoints, weight)
	return at, k.publish(strconv.Itoa(weight), k.size.Touch)
}
