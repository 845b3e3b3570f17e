package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/cache"
)

func regionOf(c policies.ClusterName) (policies.RegionName, bool) { return "r", c == "c" }

// running starts a server that ends with the test, and a connection to it.
func running(t *testing.T, config Config) (*Server, discovery.AggregatedDiscoveryServiceClient) {
	t.Helper()
	config.RegionOf = regionOf
	config.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer(s.Options()...)
	s.Register(g)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- s.Run(ctx) }()
	go func() { ended <- g.Serve(s.Listener(l)) }()
	addresses.Store(s, l.Addr().String())
	t.Cleanup(func() {
		g.Stop()
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
	return s, connection(t, s)
}

// addresses are where the tests' servers listen.
var addresses sync.Map

// dial connects to a server, by a connection of its own.
func dial(t *testing.T, s *Server) *grpc.ClientConn {
	t.Helper()
	address, _ := addresses.Load(s)
	conn, err := grpc.NewClient(address.(string), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func connection(t *testing.T, s *Server) discovery.AggregatedDiscoveryServiceClient {
	t.Helper()
	return discovery.NewAggregatedDiscoveryServiceClient(dial(t, s))
}

// delta opens a stream and asks for all clusters.
func delta(t *testing.T, ads discovery.AggregatedDiscoveryServiceClient, node *core.Node) discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	stream, err := ads.DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: string(cds)}); err != nil {
		t.Fatal(err)
	}
	return stream
}

// until polls for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatal("still not so: " + what)
		case <-tick.C:
		}
	}
}

func TestRefusalIsVisibleInStatus(t *testing.T) {
	c := &cache.Cache{}
	c.Publish(snapshot("C:good=1", "C:bad=1"), time.Now())
	answers := make(chan Answer, 10)
	s, ads := running(t, Config{Cache: c, OnAnswer: func(a Answer) { answers <- a }})
	stream := delta(t, ads, &core.Node{Id: "proxy-1", Cluster: "c"})
	r, err := stream.Recv()
	if err != nil || len(r.GetResources()) != 2 {
		t.Fatalf("%v %v", r, err)
	}
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: string(cds), ResponseNonce: r.GetNonce(), ErrorDetail: &rpc.Status{Message: "bad: no such field"}}); err != nil {
		t.Fatal(err)
	}
	if a := <-answers; !a.Refused || a.Type != cds || a.Viewpoint != "gateway/r/c" {
		t.Errorf("answer %+v", a)
	}
	until(t, "the proxy counts as nacked", func() bool { return len(s.Status()) == 1 && s.Status()[0].State == Nacked })
	p := s.Status()[0]
	if p.Node != "proxy-1" || p.Viewpoint != "gateway/r/c" || p.Protocol != "delta" || p.Types[0].Refusal != "bad: no such field" || !slices.Equal(p.Types[0].Resources, []string{"bad"}) {
		t.Errorf("status %+v", p)
	}
	c.Publish(snapshot("C:good=1", "C:bad=2"), time.Now())
	if r, err = stream.Recv(); err != nil || len(r.GetResources()) != 1 || r.GetResources()[0].GetName() != "bad" {
		t.Fatalf("what mends it: %v %v", r, err)
	}
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: string(cds), ResponseNonce: r.GetNonce()}); err != nil {
		t.Fatal(err)
	}
	until(t, "the proxy is synced", func() bool { return s.Status()[0].State == Synced })
}

func TestProxiesThatSaySomethingWrongAreTurnedAway(t *testing.T) {
	_, ads := running(t, Config{Cache: &cache.Cache{}})
	for name, c := range map[string]struct {
		node *core.Node
		code codes.Code
		says string
	}{
		"no id":           {&core.Node{Cluster: "c"}, codes.InvalidArgument, "node.id"},
		"unknown cluster": {&core.Node{Id: "p", Cluster: "x"}, codes.NotFound, "no Cluster policy"},
		"wrong region":    {&core.Node{Id: "p", Cluster: "c", Locality: &core.Locality{Region: "other"}}, codes.InvalidArgument, "is in region r"},
		"unknown role": {&core.Node{Id: "p", Cluster: "c", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{MetadataRole: structpb.NewStringValue("king")}}},
			codes.InvalidArgument, "gateway or sidecar"},
	} {
		_, err := delta(t, ads, c.node).Recv()
		if status.Code(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s that says %q", name, err, c.code, c.says)
		}
	}
}

func TestDrainSendsProxiesElsewhere(t *testing.T) {
	c := &cache.Cache{}
	c.Publish(snapshot("C:a=1"), time.Now())
	s, ads := running(t, Config{Cache: c})
	stream := delta(t, ads, &core.Node{Id: "p", Cluster: "c"})
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	s.Drain()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("a stream ends with %v", err)
	}
	if _, err := delta(t, ads, &core.Node{Id: "q", Cluster: "c"}).Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("a new stream ends with %v", err)
	}
	until(t, "no proxy is left", func() bool { return len(s.Status()) == 0 })
}

// A client that answers nothing holds nothing up for ever: routes follow after the patience for its clusters.
func TestClientThatDoesNotAnswerIsNotWaitedForForEver(t *testing.T) {
	c := &cache.Cache{}
	c.Publish(snapshot("C:a=1", "R:r=1"), time.Now())
	_, ads := running(t, Config{Cache: c, Patience: 20 * time.Millisecond})
	stream := delta(t, ads, &core.Node{Id: "p", Cluster: "c"})
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: string(rds), ResourceNamesSubscribe: []string{"r"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil { // asked for: answered at once
		t.Fatal(err)
	}
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: string(rds), ResponseNonce: "2"}); err != nil {
		t.Fatal(err)
	}
	c.Publish(snapshot("C:a=1", "R:r=2"), time.Now())
	if r, err := stream.Recv(); err != nil || r.GetTypeUrl() != string(rds) {
		t.Errorf("%v %v", r, err)
	}
}

// Nor do changes put that off, however many come.
func TestSteadyChangesDoNotPutPatienceOff(t *testing.T) {
	c := &cache.Cache{}
	c.Publish(snapshot("C:a=0", "R:r=1"), time.Now())
	_, ads := running(t, Config{Cache: c, Patience: 50 * time.Millisecond})
	stream := delta(t, ads, &core.Node{Id: "p", Cluster: "c"})
	if _, err := stream.Recv(); err != nil { // and leaves the clusters unanswered
		t.Fatal(err)
	}
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: string(rds), ResourceNamesSubscribe: []string{"r"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: string(rds), ResponseNonce: "2"}); err != nil {
		t.Fatal(err)
	}
	came := make(chan error, 1)
	go func() {
		r, err := stream.Recv()
		if err == nil && r.GetTypeUrl() != string(rds) {
			err = fmt.Errorf("got %s", r.GetTypeUrl())
		}
		came <- err
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := 1; ; i++ {
		select {
		case err := <-came:
			if err != nil {
				t.Error(err)
			}
			return
		case <-tick.C:
			c.Publish(snapshot(fmt.Sprintf("C:a=%d", i), "R:r=2"), time.Now())
		}
	}
}

func TestTypeOfWhichThereIsNothingIsAnswered(t *testing.T) {
	c := &cache.Cache{}
	c.Publish(snapshot("C:a=1"), time.Now())
	s, ads := running(t, Config{Cache: c})
	stream := delta(t, ads, &core.Node{Id: "p", Cluster: "c"})
	r, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: "type.googleapis.com/x.Unheard", ResourceNamesSubscribe: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	nothing, err := stream.Recv()
	if err != nil || nothing.GetTypeUrl() != "type.googleapis.com/x.Unheard" || !slices.Equal(nothing.GetRemovedResources(), []string{"x"}) {
		t.Fatalf("%v %v", nothing, err)
	}
	for _, r := range []*discovery.DeltaDiscoveryResponse{nothing, r} {
		if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the proxy is synced", func() bool { return len(s.Status()) == 1 && s.Status()[0].State == Synced })
}

func TestManyClientsAreAllCurrentAfterAChange(t *testing.T) {
	c := &cache.Cache{}
	c.Publish(snapshot("C:a=1", "C:b=1"), time.Now())
	_, ads := running(t, Config{Cache: c})
	var first, second sync.WaitGroup
	second.Add(200)
	for i := range 200 {
		stream := delta(t, ads, &core.Node{Id: string(rune('a' + i)), Cluster: "c"})
		first.Go(func() {
			r, err := stream.Recv()
			if err != nil {
				t.Error(err)
				second.Done()
				return
			}
			_ = stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: string(cds), ResponseNonce: r.GetNonce()})
			go func() {
				defer second.Done()
				r, err := stream.Recv()
				if err != nil || len(r.GetResources()) != 1 || r.GetResources()[0].GetVersion() != "2" {
					t.Errorf("%v %v", r, err)
				}
			}()
		})
	}
	first.Wait()
	c.Publish(snapshot("C:a=1", "C:b=2"), time.Now())
	second.Wait()
}

func TestStateOfTheWorldOverGRPC(t *testing.T) {
	c := &cache.Cache{}
	c.Publish(snapshot("C:a=1"), time.Now())
	s, ads := running(t, Config{Cache: c})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stream, err := ads.StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discovery.DiscoveryRequest{Node: &core.Node{Id: "p", Cluster: "c"}, TypeUrl: string(cds)}); err != nil {
		t.Fatal(err)
	}
	r, err := stream.Recv()
	if err != nil || len(r.GetResources()) != 1 || r.GetVersionInfo() == "" {
		t.Fatalf("%v %v", r, err)
	}
	if err := stream.Send(&discovery.DiscoveryRequest{TypeUrl: string(cds), ResponseNonce: r.GetNonce(), VersionInfo: r.GetVersionInfo()}); err != nil {
		t.Fatal(err)
	}
	until(t, "the proxy is synced", func() bool {
		return len(s.Status()) == 1 && s.Status()[0].State == Synced && s.Status()[0].Protocol == "sotw"
	})
	// Another stream that holds the same version is sent nothing until something changes.
	again, err := ads.StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Send(&discovery.DiscoveryRequest{Node: &core.Node{Id: "q", Cluster: "c"}, TypeUrl: string(cds), VersionInfo: r.GetVersionInfo()}); err != nil {
		t.Fatal(err)
	}
	until(t, "both are there", func() bool { return len(s.Status()) == 2 })
	c.Publish(snapshot("C:a=2"), time.Now())
	if r, err := again.Recv(); err != nil || string(r.GetResources()[0].GetValue()) != "2" {
		t.Errorf("%v %v", r, err)
	}
}

func TestDialectGoesByWhatTheNodeSaysItIs(t *testing.T) {
	version := func(major, minor uint32) *core.Node_UserAgentBuildVersion {
		return &core.Node_UserAgentBuildVersion{UserAgentBuildVersion: &core.BuildVersion{Version: &typev3.SemanticVersion{MajorNumber: major, MinorNumber: minor}}}
	}
	for name, c := range map[string]struct {
		node *core.Node
		want world.Dialect
	}{
		"an old Envoy":                    {&core.Node{UserAgentName: "envoy", UserAgentVersionType: version(1, 36)}, world.DialectEnvoy136},
		"a newer Envoy":                   {&core.Node{UserAgentName: "envoy", UserAgentVersionType: version(1, 38)}, world.DialectEnvoy},
		"an Envoy of an unknown age":      {&core.Node{UserAgentName: "envoy"}, world.DialectEnvoy},
		"a gRPC client":                   {&core.Node{UserAgentName: "gRPC Go", UserAgentVersionType: &core.Node_UserAgentVersion{UserAgentVersion: "1.85.0"}}, world.DialectGRPC},
		"something else, however old":     {&core.Node{UserAgentName: "other", UserAgentVersionType: version(1, 2)}, world.DialectEnvoy},
		"whoever does not say what it is": {&core.Node{}, world.DialectEnvoy},
	} {
		c.node.Id, c.node.Cluster = "p", "c"
		if v, err := Viewpoint(c.node, regionOf); err != nil || v.Dialect != c.want {
			t.Errorf("%s: dialect %q, want %q (%v)", name, v.Dialect, c.want, err)
		}
	}
}

func FuzzViewpoint(f *testing.F) {
	for _, n := range []*core.Node{
		{}, {Id: "p", Cluster: "c"}, {Id: "p", Cluster: "c", Locality: &core.Locality{Region: "r", Zone: "c"}},
		{Id: "p", Cluster: "c", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{MetadataRole: structpb.NewStringValue("sidecar")}}},
		{Id: "p", Cluster: "x/y", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{MetadataRole: structpb.NewNumberValue(1)}}},
	} {
		bytes, err := proto.Marshal(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		var n core.Node
		if proto.Unmarshal(bytes, &n) != nil {
			return
		}
		v, err := Viewpoint(&n, regionOf)
		if err != nil {
			if status.Code(err) != codes.InvalidArgument && status.Code(err) != codes.NotFound {
				t.Errorf("%v has no code that a client could use", err)
			}
			return
		}
		if back, err := world.ParseViewpoint(v.ID()); err != nil || back != v || v.Cluster != "c" || v.Region != "r" {
			t.Errorf("%+v from %v: %v", v, &n, err)
		}
	})
}
