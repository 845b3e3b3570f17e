package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/internal/pipeline"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
	"github.com/meridian-mesh/meridian/xds/serve"
)

// folder writes policies with one cluster and so many services.
func folder(services int) string {
	var b strings.Builder
	b.WriteString("apiVersion: meridian.dev/v1alpha1\nkind: Region\nmetadata: {name: fra}\nspec: {cloud: aws/eu-central-1}\n")
	b.WriteString("---\napiVersion: meridian.dev/v1alpha1\nkind: Cluster\nmetadata: {name: c0}\nspec: {region: fra}\n")
	b.WriteString("---\napiVersion: meridian.dev/v1alpha1\nkind: Gateway\nmetadata: {name: edge}\nspec: {listeners: [{name: http, port: 80}]}\n")
	for s := range services {
		fmt.Fprintf(&b, "---\napiVersion: meridian.dev/v1alpha1\nkind: Service\nmetadata: {name: s%d}\nspec: {models: [m%d], pools: [{cluster: c0, endpoints: [{address: 127.1.%d.%d, port: 80}]}], health: {unhealthyThreshold: 1, healthyThreshold: 1}}\n", s, s, s/250, s%250+1)
	}
	return b.String()
}

// client is an Envoy-like stream: it subscribes as Envoy does, acknowledges, and says when it has a new version of one
// resource.
type client struct {
	stream  discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	watched string
	has     chan string
}

func (c *client) run() {
	for {
		r, err := c.stream.Recv()
		if err != nil {
			return
		}
		ack := &discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}
		if c.stream.Send(ack) != nil {
			return
		}
		if r.GetTypeUrl() == string(xds.TypeCluster) {
			names := make([]string, len(r.GetResources()))
			for i, res := range r.GetResources() {
				names[i] = res.GetName()
			}
			if c.stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: string(xds.TypeEndpoint), ResourceNamesSubscribe: names}) != nil {
				return
			}
		}
		for _, res := range r.GetResources() {
			if res.GetName() == c.watched && r.GetTypeUrl() == string(xds.TypeEndpoint) {
				c.has <- res.GetVersion()
			}
		}
	}
}

// BenchmarkHealthChangeToEveryStream times from an endpoint's health signal until each of a number of streams has
// received what follows from it: judge, commit, plan, build, verify, publish, send.
func BenchmarkHealthChangeToEveryStream(b *testing.B) {
	for _, size := range []struct{ streams, services int }{{100, 10}, {100, 1000}} {
		b.Run(fmt.Sprintf("streams=%d/services=%d", size.streams, size.services), func(b *testing.B) {
			fanOut(b, size.streams, size.services)
		})
	}
}

func fanOut(b *testing.B, streams, services int) {
	set, diagnostics := policies.Parse([]policies.File{{Name: "bench.yaml", Bytes: []byte(folder(services))}})
	if len(diagnostics) > 0 {
		b.Fatal(diagnostics[0])
	}
	ctx, cancel := context.WithCancel(b.Context())
	published := &cache.Cache{}
	p, err := pipeline.New(pipeline.Config{Publish: published.Publish, Quiet: time.Microsecond})
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	p.SetPolicies(set)
	p.SeeViewpoint(world.Viewpoint{Role: policies.RoleGateway, Region: "fra", Cluster: "c0"})
	server, err := serve.New(serve.Config{Cache: published, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), OnViewpoint: p.SeeViewpoint,
		RegionOf: func(policies.ClusterName) (policies.RegionName, bool) { return "fra", true }})
	if err != nil {
		b.Fatal(err)
	}
	g := grpc.NewServer()
	server.Register(g)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = g.Serve(l) }()
	pool := world.PoolKey{Service: "s0", Cluster: "c0"}
	clients := connect(b, l.Addr().String(), streams, xds.PoolCluster(pool))
	for _, c := range clients {
		<-c.has
	}
	endpoint := world.EndpointKey{Pool: pool, Address: set.Services[0].Spec.Pools[0].Endpoints[0].AddrPort()}
	up := true // an endpoint of which nothing is known is offered as well
	b.ReportAllocs()
	for b.Loop() {
		up = !up
		p.Signal(health.Probed{Endpoint: endpoint, OK: up, Cause: "bench", At: time.Now()})
		for _, c := range clients {
			<-c.has
		}
	}
	g.Stop()
	cancel()
	<-ended
}

// connect opens streams and subscribes to clusters, as Envoy begins.
func connect(b *testing.B, address string, streams int, watched string) []*client {
	b.Helper()
	clients := make([]*client, streams)
	for i := range clients {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		node := &core.Node{Id: fmt.Sprintf("proxy-%d", i), Cluster: "c0"}
		if err := stream.Send(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: string(xds.TypeCluster)}); err != nil {
			b.Fatal(err)
		}
		clients[i] = &client{stream: stream, watched: watched, has: make(chan string, 16)}
		go clients[i].run()
	}
	return clients
}
