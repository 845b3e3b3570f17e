package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/meridian-mesh/meridian/bench/internal/trial"
	"github.com/meridian-mesh/meridian/bench/kube/stub"
	"github.com/meridian-mesh/meridian/xds"
)

// proxies are a delta client in each cluster, which holds the endpoints of the pools there.
type proxies struct {
	cancel  context.CancelFunc
	ended   sync.WaitGroup
	failed  chan error
	lacking atomic.Int64   // assignments that have not come
	arrived []atomic.Int64 // by event
}

func (p *proxies) do(ctx context.Context, o order) (answer, error) {
	switch o.Do {
	case "connect":
		return answer{}, p.connect(ctx, o)
	case "arrivals":
		return p.arrivals(ctx)
	}
	return unknown(o)
}

// connect starts all, and waits until each has everything.
func (p *proxies) connect(ctx context.Context, o order) error {
	ctx, p.cancel = context.WithCancel(ctx)
	p.failed, p.arrived = make(chan error, o.Size.Clusters), make([]atomic.Int64, o.Size.events())
	p.lacking.Store(int64(o.Size.Clusters * o.Size.Services))
	for c := range o.Size.Clusters {
		p.ended.Go(func() {
			if err := p.client(ctx, c, o); err != nil && ctx.Err() == nil {
				p.failed <- fmt.Errorf("proxy in %s: %w", clusterName(c), err)
			}
		})
	}
	return p.until(ctx, patience, func() bool { return p.lacking.Load() <= 0 })
}

// until waits until something holds, or a client fails.
func (p *proxies) until(ctx context.Context, most time.Duration, holds func() bool) error {
	for began := time.Now(); !holds(); {
		select {
		case err := <-p.failed:
			return err
		default:
		}
		if time.Since(began) > most || ctx.Err() != nil {
			return errors.New("it takes too long")
		}
		trial.Pause(ctx, 10*time.Millisecond)
	}
	return nil
}

// arrivals waits for what is still on its way.
func (p *proxies) arrivals(ctx context.Context) (a answer, err error) {
	err = p.until(ctx, 30*time.Second, func() bool {
		for i := range p.arrived {
			if p.arrived[i].Load() == 0 {
				return false
			}
		}
		return true
	})
	for i := range p.arrived {
		a.Events = append(a.Events, p.arrived[i].Load())
	}
	return a, err
}

// client subscribes to the endpoints of all pools in its cluster, and takes what comes until the stream ends.
func (p *proxies) client(ctx context.Context, cluster int, o order) error {
	conn, err := grpc.NewClient(o.Address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256<<20)))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return err
	}
	first := &discovery.DeltaDiscoveryRequest{
		Node:    &core.Node{Id: "gateway-of-" + clusterName(cluster), Cluster: clusterName(cluster), UserAgentName: "envoy"},
		TypeUrl: string(xds.TypeEndpoint),
	}
	for s := range o.Size.Services {
		first.ResourceNamesSubscribe = append(first.ResourceNamesSubscribe, xds.PoolCluster(poolOf(s, cluster)))
	}
	if err := stream.Send(first); err != nil {
		return err
	}
	known := map[string]bool{}
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		at := time.Now().UnixNano()
		for _, resource := range r.Resources {
			if err := p.take(resource, at, known, o.Size); err != nil {
				return err
			}
		}
		if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce}); err != nil {
			return err
		}
	}
}

// take notes which events are in an assignment.
func (p *proxies) take(r *discovery.Resource, at int64, known map[string]bool, s size) error {
	var a endpoint.ClusterLoadAssignment
	if err := proto.Unmarshal(r.GetResource().GetValue(), &a); err != nil {
		return err
	}
	n := 0
	for _, locality := range a.Endpoints {
		for _, e := range locality.LbEndpoints {
			n++
			address, err := netip.ParseAddr(e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
			if err != nil {
				return fmt.Errorf("%s: %w", r.Name, err)
			}
			if event, ok := stub.EventOf(address); ok && event < len(p.arrived) {
				p.arrived[event].CompareAndSwap(0, at)
			}
		}
	}
	if n == s.shape(0).PodsPerService() && !known[r.Name] {
		known[r.Name] = true
		p.lacking.Add(-1)
	}
	return nil
}

func (p *proxies) end() error {
	if p.cancel != nil {
		p.cancel()
		p.ended.Wait()
	}
	return nil
}
