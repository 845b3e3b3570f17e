package serve

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/meridian-mesh/meridian/xds/cache"
)

// goodClients is how many clients must stay current while others flood the server.
const goodClients = 1000

// steady is a crowd of clients that count what they get, ten to a connection.
type steady struct {
	t    *testing.T
	got  [goodClients]atomic.Pointer[string] // the newest version of endpoints "a"
	done sync.WaitGroup
}

func newSteady(t *testing.T, s *Server) *steady {
	t.Helper()
	c := &steady{t: t}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); c.done.Wait() })
	var ads discovery.AggregatedDiscoveryServiceClient
	for i := range goodClients {
		if i%10 == 0 {
			ads = connection(t, s)
		}
		stream, err := ads.DeltaAggregatedResources(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&discovery.DeltaDiscoveryRequest{Node: nodeOf(fmt.Sprintf("good-%d", i)), TypeUrl: string(eds), ResourceNamesSubscribe: []string{"a"}}); err != nil {
			t.Fatal(err)
		}
		c.done.Go(func() { c.follow(ctx, i, stream) })
	}
	return c
}

func (c *steady) follow(ctx context.Context, i int, stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient) {
	for {
		r, err := stream.Recv()
		if err != nil {
			if ctx.Err() == nil {
				c.t.Errorf("good client %d: %v", i, err)
			}
			return
		}
		for _, res := range r.GetResources() {
			version := res.GetVersion()
			c.got[i].Store(&version)
		}
		_ = stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: string(eds), ResponseNonce: r.GetNonce()}) // an error is Recv's too
	}
}

// current counts the clients that have a version.
func (c *steady) current(version string) (n int) {
	for i := range c.got {
		if v := c.got[i].Load(); v != nil && *v == version {
			n++
		}
	}
	return n
}

// flood does one kind of harm after the other, as fast as it can, until ctx ends.
func flood(ctx context.Context, ads discovery.AggregatedDiscoveryServiceClient, which int) {
	for n := 0; ctx.Err() == nil; n++ {
		stream, err := ads.DeltaAggregatedResources(ctx)
		if err != nil {
			continue
		}
		request := &discovery.DeltaDiscoveryRequest{Node: nodeOf("flood"), TypeUrl: string(eds)}
		for k := range 200 {
			switch which {
			case 0: // other names each time, many of them
				request.ResourceNamesSubscribe = []string{fmt.Sprint(n, k), fmt.Sprint(k), "a"}
				for j := range 100 {
					request.ResourceNamesSubscribe = append(request.ResourceNamesSubscribe, fmt.Sprint("x", k*100+j))
				}
			case 1: // one type more each time
				request.TypeUrl = fmt.Sprint("type.googleapis.com/x.T", k)
			case 2: // the same again and again, read by nobody
				request.ResourceNamesSubscribe = []string{"large"}
			case 3: // wrong nonces and refusals
				request.ResponseNonce = fmt.Sprint(k)
			}
			if stream.Send(request) != nil {
				break
			}
			request.Node = nil
		}
		_ = stream.CloseSend() // and another stream
	}
}

// While clients flood the server in every way, a thousand others get each change.
func TestFloodHurtsNobodyElse(t *testing.T) {
	large := string(make([]byte, 1<<16))
	published := func(i int) []string { return []string{fmt.Sprintf("E:a=%d", i), "E:large=" + large} }
	c := &cache.Cache{}
	c.Publish(snapshot(published(0)...), time.Now())
	var why rejections
	s, _ := running(t, Config{Cache: c, OnRejected: why.note, SendTimeout: time.Second, CanaryShare: 1,
		Limits: Limits{StreamsPerIdentity: 50, Names: 5000, RequestsPerSecond: 100, RequestBurst: 100}})
	good := newSteady(t, s)
	until(t, "all have the first", func() bool { return good.current("0") == goodClients })
	ctx, cancel := context.WithCancel(t.Context())
	var flooding sync.WaitGroup
	for which := range 4 {
		ads := connection(t, s)
		flooding.Go(func() { flood(ctx, ads, which) })
	}
	for i := 1; i <= 10; i++ {
		c.Publish(snapshot(published(i)...), time.Now())
		until(t, fmt.Sprintf("all have change %d", i), func() bool { return good.current(fmt.Sprint(i)) == goodClients })
	}
	until(t, "limits have met the flood", func() bool { return why.has(RejectedStreams) || why.has(RejectedNames) })
	cancel()
	flooding.Wait()
}
