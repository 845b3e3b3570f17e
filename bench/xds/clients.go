package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/meridian-mesh/meridian/bench/internal/trial"
	"github.com/meridian-mesh/meridian/xds"
)

// crowd are the synthetic clients.
type crowd struct {
	size    size
	cancel  context.CancelFunc
	ended   sync.WaitGroup
	failed  chan error
	synced  chan struct{}
	left    atomic.Int64 // clients that are not synced yet, or have not got the change yet
	arrived []atomic.Int64
	names   []string
	held    holdings
	storm   atomic.Bool
}

func (c *crowd) do(ctx context.Context, o order) (answer, error) {
	switch o.Do {
	case "connect":
		c.size = o.Size
		return answer{}, c.connect(ctx, o)
	case "expect", "expect storm":
		c.storm.Store(o.Do == "expect storm")
		c.expect()
		return answer{}, nil
	case "wait":
		if err := c.wait(ctx); err != nil {
			return answer{}, err
		}
		return answer{Arrivals: c.arrivals()}, nil
	case "usage":
		u, err := trial.Used(false)
		return answer{Usage: u}, err
	}
	return answer{}, fmt.Errorf("no such order: %s", o.Do)
}

// touched counts the clients of touched viewpoints: client i is of viewpoint i modulo their number.
func (c *crowd) touched() int {
	n := 0
	for i := range c.size.Clients {
		if i%c.size.Views < c.size.Touch {
			n++
		}
	}
	return n
}

func (c *crowd) arrivals() []int64 {
	var all []int64
	for i := range c.arrived {
		if i%c.size.Views < c.size.Touch {
			all = append(all, c.arrived[i].Load())
		}
	}
	return all
}

// dialling bounds how many clients connect at a time.
const dialling = 256

// connect starts all clients, and waits until each has everything.
func (c *crowd) connect(ctx context.Context, o order) error {
	ctx, c.cancel = context.WithCancel(ctx)
	c.failed, c.synced = make(chan error, 1), make(chan struct{}, 1)
	c.arrived = make([]atomic.Int64, c.size.Clients)
	c.left.Store(int64(c.size.Clients))
	for i := range c.size.Services {
		c.names = append(c.names, serviceName(i))
	}
	slots := make(chan struct{}, dialling)
	for i := range c.size.Clients {
		slots <- struct{}{}
		c.ended.Go(func() {
			err := c.client(ctx, i, o, func() { <-slots })
			for err != nil && ctx.Err() == nil && c.storm.Load() {
				trial.Pause(ctx, rand.N(time.Second))
				err = c.client(ctx, i, o, nil)
			}
			if err != nil && ctx.Err() == nil {
				select {
				case c.failed <- fmt.Errorf("client %d: %w", i, err):
				default:
				}
			}
		})
	}
	return c.wait(ctx)
}

// patience is how long all clients may take.
const patience = 10 * time.Minute

// wait waits until every client has what it is to get.
func (c *crowd) wait(ctx context.Context) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-c.failed:
		return err
	case <-c.synced:
		return nil
	case <-late.C:
		return fmt.Errorf("%d clients have not got it after %v", c.left.Load(), patience)
	}
}

// got notes that a client has what it was to get. Another response to the same change counts for nothing.
func (c *crowd) got(i int) {
	if c.arrived[i].CompareAndSwap(0, time.Now().UnixNano()) && c.left.Add(-1) == 0 {
		c.synced <- struct{}{}
	}
}

// expect lets the next response of each touched client count.
func (c *crowd) expect() {
	for i := range c.arrived {
		c.arrived[i].Store(0)
	}
	c.left.Store(int64(c.touched()))
}

func (c *crowd) end() {
	if c.cancel != nil {
		c.cancel()
		c.ended.Wait()
	}
}

// window is as large as a first answer, so that flow control is not what is measured.
const window = 4 << 20

// client is one client until its stream ends. connected is called when it has one; without, the client has been there before.
func (c *crowd) client(ctx context.Context, i int, o order, connected func()) error {
	again := connected == nil
	if again {
		connected = func() {}
	}
	release := sync.OnceFunc(connected)
	defer release()
	conn, err := grpc.NewClient(o.Address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{}), grpc.MaxCallRecvMsgSize(256<<20)),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	method := discovery.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName
	if c.size.Protocol == "sotw" {
		method = discovery.AggregatedDiscoveryService_StreamAggregatedResources_FullMethodName
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return err
	}
	node := &core.Node{Id: fmt.Sprintf("proxy-%05d", i), Cluster: viewName(i % c.size.Views)}
	first, err := c.first(node)
	if err != nil {
		return err
	}
	if again {
		first = append(first, c.held.of(xds.TypeCluster)...)
	}
	if err := stream.SendMsg(first); err != nil {
		return err
	}
	if again {
		if err := stream.SendMsg(append(c.askEndpoints(), c.held.of(xds.TypeEndpoint)...)); err != nil {
			return err
		}
	}
	release()
	return c.follow(i, stream, again)
}

// first asks for all clusters.
func (c *crowd) first(node *core.Node) ([]byte, error) {
	if c.size.Protocol == "sotw" {
		return proto.Marshal(&discovery.DiscoveryRequest{Node: node, TypeUrl: string(xds.TypeCluster)})
	}
	return proto.Marshal(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: string(xds.TypeCluster)})
}

// follow takes what comes.
func (c *crowd) follow(i int, stream grpc.ClientStream, asked bool) error {
	endpoints := 0
	if asked {
		endpoints = c.size.Services
	}
	for {
		var r received
		if i == 0 && !c.storm.Load() { // what comes back from a storm has not been seen by the others yet
			r.holdings = &c.held
		}
		if err := stream.RecvMsg(&r); err != nil {
			return err
		}
		if r.typ == "" { // the bare server's
			c.got(i)
			continue
		}
		if err := stream.SendMsg(c.accept(&r)); err != nil {
			return err
		}
		switch {
		case r.typ == string(xds.TypeCluster) && !asked:
			asked = true
			if err := stream.SendMsg(c.askEndpoints()); err != nil {
				return err
			}
		case r.typ == string(xds.TypeEndpoint) && endpoints < c.size.Services:
			if endpoints += r.resources; endpoints >= c.size.Services {
				c.got(i)
			}
		case r.typ == string(xds.TypeEndpoint):
			c.got(i)
		}
	}
}

// askEndpoints subscribes to every service's endpoints.
func (c *crowd) askEndpoints() []byte {
	if c.size.Protocol == "sotw" {
		return c.stateRequest(string(xds.TypeEndpoint), "", "")
	}
	b := field(nil, 2, string(xds.TypeEndpoint))
	for _, name := range c.names {
		b = field(b, 3, name)
	}
	return b
}

// accept acknowledges a response. Under the state of the world it repeats the names, as Envoy does.
func (c *crowd) accept(r *received) []byte {
	if c.size.Protocol == "sotw" {
		return c.stateRequest(r.typ, r.nonce, r.version)
	}
	return field(field(nil, 2, r.typ), 6, r.nonce)
}

func (c *crowd) stateRequest(typ, nonce, version string) []byte {
	b := field(field(field(nil, 1, version), 4, typ), 5, nonce)
	if typ == string(xds.TypeEndpoint) {
		for _, name := range c.names {
			b = field(b, 3, name)
		}
	}
	return b
}

func field(b []byte, number protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), s)
}

// received is what a client needs to know of a response, in either protocol: both have these fields alike.
type received struct {
	version, typ, nonce string
	resources           int
	holdings            *holdings // notes names and versions; nil where they are known
}

// raw is the clients' codec: it sends bytes as they are, and reads of a response only what a client needs to go on, so that
// clients cost little.
type raw struct{}

// Name implements encoding.CodecV2.
func (raw) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	r := v.(*received)
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	for b := buffer.ReadOnlyData(); len(b) > 0; {
		number, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		m := protowire.ConsumeFieldValue(number, typ, b)
		if m < 0 {
			return protowire.ParseError(m)
		}
		switch number {
		case 2:
			r.resources++
			if r.holdings != nil {
				r.holdings.note(b)
			}
		case 1:
			r.version = text(b)
		case 4:
			r.typ = text(b)
		case 5:
			r.nonce = text(b)
		}
		b = b[m:]
	}
	if r.holdings != nil {
		r.holdings.settle(r.typ)
	}
	return nil
}

func text(b []byte) string {
	value, _ := protowire.ConsumeBytes(b)
	return string(value)
}
