package serve

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
)

// rejections collects why streams were turned away.
type rejections struct {
	mu  sync.Mutex
	all []Rejection
}

func (r *rejections) note(why Rejection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, why)
}

func (r *rejections) has(why Rejection) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, have := range r.all {
		if have == why {
			return true
		}
	}
	return false
}

func TestLimitsEndTheStreamThatBreaksThem(t *testing.T) {
	names := func(n int) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprint(i)
		}
		return all
	}
	for name, c := range map[string]struct {
		requests []*discovery.DeltaDiscoveryRequest
		code     codes.Code
		says     string
		why      Rejection
	}{
		"too many names at once": {[]*discovery.DeltaDiscoveryRequest{{Node: nodeOf("p"), TypeUrl: string(eds), ResourceNamesSubscribe: names(11)}},
			codes.ResourceExhausted, "may name 10", RejectedNames},
		"too many names one by one": {[]*discovery.DeltaDiscoveryRequest{{Node: nodeOf("p"), TypeUrl: string(eds), ResourceNamesSubscribe: names(10)},
			{TypeUrl: string(eds), ResourceNamesSubscribe: []string{"one more"}}}, codes.ResourceExhausted, "may name 10", RejectedNames},
		"too many types": {[]*discovery.DeltaDiscoveryRequest{{Node: nodeOf("p"), TypeUrl: "a"}, {TypeUrl: "b"}, {TypeUrl: "c"}, {TypeUrl: "d"}},
			codes.ResourceExhausted, "3 types", RejectedNames},
		"too large": {[]*discovery.DeltaDiscoveryRequest{{Node: nodeOf("p"), TypeUrl: strings.Repeat("x", 5000)}}, codes.ResourceExhausted, "larger than max", ""},
		"no type":   {[]*discovery.DeltaDiscoveryRequest{{Node: nodeOf("p")}}, codes.InvalidArgument, "type_url", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var why rejections
			published := &cache.Cache{}
			published.Publish(snapshot("C:a=1"), time.Now())
			_, ads := running(t, Config{Cache: published, OnRejected: why.note, Limits: Limits{Names: 10, Types: 3, MessageBytes: 4000}})
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			stream, err := ads.DeltaAggregatedResources(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range c.requests {
				if stream.Send(r) != nil {
					break // Recv says why
				}
			}
			for err == nil {
				_, err = stream.Recv()
			}
			if status.Code(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s that says %q", err, c.code, c.says)
			}
			if c.why != "" && !why.has(c.why) {
				t.Errorf("counted %v, want %s", why.all, c.why)
			}
		})
	}
}

func TestOneIdentityHasSoManyStreams(t *testing.T) {
	var why rejections
	c := &cache.Cache{}
	c.Publish(snapshot("C:a=1"), time.Now())
	_, ads := running(t, Config{Cache: c, OnRejected: why.note, Limits: Limits{StreamsPerIdentity: 2}})
	one, two := join(t, ads, "greedy", "", cds), join(t, ads, "greedy", "", cds)
	one.gets("C a=1")
	two.gets("C a=1")
	third := join(t, ads, "greedy", "", cds)
	if err := <-third.err; status.Code(err) != codes.ResourceExhausted || !why.has(RejectedStreams) {
		t.Errorf("the third: %v, counted %v", err, why.all)
	}
	join(t, ads, "modest", "", cds).gets("C a=1")
	one.cancel()
	<-one.err
	until(t, "there is room again", func() bool {
		again := join(t, ads, "greedy", "", cds)
		select {
		case <-again.came:
			return true
		case <-again.err:
			return false
		}
	})
}

func TestViewpointsAreBounded(t *testing.T) {
	c := &cache.Cache{}
	c.Publish(snapshot("C:a=1"), time.Now())
	_, ads := running(t, Config{Cache: c, Limits: Limits{Viewpoints: 1}})
	join(t, ads, "one", "", cds).gets("C a=1")
	node := nodeOf("two")
	node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{MetadataTenants: structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("acme")}})}}
	if _, err := delta(t, ads, node).Recv(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "@acme") {
		t.Errorf("one viewpoint more: %v", err)
	}
}

func TestAPeerGetsOnlyTheViewpointThatIsItsOwn(t *testing.T) {
	var why rejections
	c := &cache.Cache{}
	c.Publish(snapshot("C:a=1"), time.Now())
	_, ads := running(t, Config{Cache: c, OnRejected: why.note, Authenticate: func(_ context.Context, claimed world.Viewpoint) (string, error) {
		return "", status.Errorf(codes.PermissionDenied, "you are not in %s", claimed.Cluster)
	}})
	_, err := delta(t, ads, nodeOf("p")).Recv()
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "not in c") || !why.has(RejectedIdentity) {
		t.Errorf("%v, counted %v", err, why.all)
	}
}

// A client that does not read is cut off; what waits for it is replaced by what is newest, and nobody else notices.
func TestClientThatDoesNotReadIsCutOff(t *testing.T) {
	var why rejections
	large := strings.Repeat("x", 1<<20)
	published := func(i int) *xds.Snapshot { return snapshot(fmt.Sprintf("E:a=%d%s", i, large)) }
	c := &cache.Cache{}
	c.Publish(published(0), time.Now())
	s, ads := running(t, Config{Cache: c, OnRejected: why.note, SendTimeout: 200 * time.Millisecond, Patience: time.Millisecond})
	deaf := connection(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	stream, err := deaf.DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{Node: nodeOf("deaf"), TypeUrl: string(eds)}); err != nil {
		t.Fatal(err)
	}
	good := join(t, ads, "good", "", eds)
	got := 0
	for i := 1; !why.has(RejectedSlow); i++ {
		select {
		case <-good.came:
			got++
			// The deaf one answers, so that more comes, but never reads.
			_ = stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: string(eds), ResponseNonce: fmt.Sprint(i)})
			c.Publish(published(i), time.Now())
		case err := <-good.err:
			t.Fatalf("the good client's stream ended: %v", err)
		case <-time.After(time.Second): // nothing is under way: wait for the cut
		case <-ctx.Done():
			t.Fatal("the deaf client was not cut off")
		}
	}
	if got < 2 {
		t.Errorf("the good client got %d responses meanwhile", got)
	}
	until(t, "only the good one is left", func() bool { return len(s.Status()) == 1 && s.Status()[0].Node == "good" })
}

// What a client sends too fast is read slowly, and answered all the same.
func TestRequestsAreReadAtTheirRate(t *testing.T) {
	c := &cache.Cache{}
	c.Publish(snapshot("E:a=1"), time.Now())
	_, ads := running(t, Config{Cache: c, Limits: Limits{RequestsPerSecond: 50, RequestBurst: 1}})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stream, err := ads.DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for i := range 20 {
		var node *core.Node
		if i == 0 {
			node = nodeOf("eager")
		}
		if err := stream.Send(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: string(eds), ResourceNamesSubscribe: []string{"a"}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took < 18*20*time.Millisecond {
		t.Errorf("20 requests were read in %v, at 50 a second", took)
	}
}
