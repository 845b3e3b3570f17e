package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/pprof"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"

	"github.com/meridian-mesh/meridian/bench/internal/trial"
)

// side is a server that is measured.
type side interface {
	// serve registers with a gRPC server that was made with options.
	options() []grpc.ServerOption
	serve(context.Context, *grpc.Server)
	// listener wraps the listener where the side wants to know of its connections.
	listener(net.Listener) net.Listener
	// change gives the first service's first endpoint a weight, in the touched viewpoints, and says when it began.
	change(weight int) (time.Time, error)
}

// host runs a side and obeys the parent.
type host struct {
	side    side
	grpc    *grpc.Server
	cancel  context.CancelFunc
	ended   chan error
	weight  int
	profile *os.File
}

func (h *host) do(ctx context.Context, o order) (answer, error) {
	switch o.Do {
	case "serve":
		address, err := h.serve(ctx, o)
		return answer{Address: address}, err
	case "change":
		h.weight++
		at, err := h.side.change(h.weight + 1)
		return answer{At: at.UnixNano()}, err
	case "storm":
		return h.storm(ctx, o)
	case "usage", "usage after collection":
		u, err := trial.Used(o.Do != "usage")
		return answer{Usage: u}, err
	case "profile":
		return answer{}, h.startProfile(o.Profile)
	case "end profile":
		pprof.StopCPUProfile()
		return answer{}, h.profile.Close()
	}
	return answer{}, fmt.Errorf("no such order: %s", o.Do)
}

func (h *host) startProfile(name string) (err error) {
	if h.profile, err = os.Create(name); err != nil {
		return err
	}
	return pprof.StartCPUProfile(h.profile)
}

func (h *host) serve(ctx context.Context, o order) (string, error) {
	var err error
	switch o.Side {
	case "stock":
		h.side, err = newStock(o.Size)
	case "meridian":
		h.side, err = newMeridian(o.Size)
	case "bare":
		h.side, err = newBare(o.Size)
	default:
		err = fmt.Errorf("no such side: %s", o.Side)
	}
	if err != nil {
		return "", err
	}
	ctx, h.cancel = context.WithCancel(ctx)
	return h.listen(ctx, "127.0.0.1:0")
}

// storm loses all connections, makes a change, and listens again where it did.
func (h *host) storm(ctx context.Context, o order) (answer, error) {
	if err := trial.ResetPeak(); err != nil {
		return answer{}, err
	}
	at := time.Now()
	h.grpc.Stop()
	if err := <-h.ended; err != nil {
		return answer{}, err
	}
	h.weight++
	if _, err := h.side.change(h.weight + 1); err != nil {
		return answer{}, err
	}
	_, err := h.listen(ctx, o.Address)
	return answer{At: at.UnixNano()}, err
}

func (h *host) listen(ctx context.Context, address string) (string, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", err
	}
	h.grpc = grpc.NewServer(h.side.options()...)
	h.side.serve(ctx, h.grpc)
	h.ended = make(chan error, 1)
	go func() { h.ended <- h.grpc.Serve(h.side.listener(l)) }()
	return l.Addr().String(), nil
}

func (h *host) end() {
	if h.grpc != nil {
		h.cancel()
		h.grpc.Stop()
		if err := <-h.ended; err != nil {
			fmt.Fprintln(os.Stderr, "bench/xds: the server ended:", err)
		}
	}
}

// bare answers the first request of a stream with nothing and then keeps it open: what a stream costs that has no xDS on it.
type bare struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	meridian *meridian // for its options
}

func newBare(s size) (*bare, error) {
	m, err := newMeridian(size{Services: 1, Endpoints: 1, Views: 1, Touch: 1, Protocol: s.Protocol})
	return &bare{meridian: m}, err
}

func (b *bare) options() []grpc.ServerOption { return b.meridian.options() }

func (b *bare) listener(l net.Listener) net.Listener { return l }

func (b *bare) serve(_ context.Context, g *grpc.Server) {
	discovery.RegisterAggregatedDiscoveryServiceServer(g, b)
}

func (b *bare) change(int) (time.Time, error) { return time.Time{}, errors.New("nothing to change") }

// DeltaAggregatedResources keeps a stream open.
func (b *bare) DeltaAggregatedResources(s discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	if _, err := s.Recv(); err != nil {
		return err
	}
	if err := s.Send(&discovery.DeltaDiscoveryResponse{}); err != nil {
		return err
	}
	_, err := s.Recv()
	return err
}

// StreamAggregatedResources keeps a stream open.
func (b *bare) StreamAggregatedResources(s discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	if _, err := s.Recv(); err != nil {
		return err
	}
	if err := s.Send(&discovery.DiscoveryResponse{}); err != nil {
		return err
	}
	_, err := s.Recv()
	return err
}
