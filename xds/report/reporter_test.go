package report

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	loadstats "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running starts a reporter that ends with the test, and gives what it delivers.
func running(t *testing.T) (loadstats.LoadReportingServiceClient, <-chan health.Reported) {
	t.Helper()
	signals := make(chan health.Reported, 100)
	r, err := New(Config{
		Deliver: func(s health.Signal) { signals <- s.(health.Reported) },
		Viewpoint: func(n *core.Node) (world.Viewpoint, error) {
			if n.GetId() == "" {
				return world.Viewpoint{}, errors.New("who?")
			}
			return world.Viewpoint{Role: policies.RoleGateway, Region: "r", Cluster: "here"}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer(grpc.WaitForHandlers(true))
	r.Register(g)
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		g.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return loadstats.NewLoadReportingServiceClient(conn), signals
}

// proxy connects a proxy that reports.
type proxy struct {
	t      *testing.T
	stream loadstats.LoadReportingService_StreamLoadStatsClient
	leave  context.CancelFunc
}

func connect(t *testing.T, c loadstats.LoadReportingServiceClient, id string) proxy {
	t.Helper()
	ctx, leave := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(leave)
	stream, err := c.StreamLoadStats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&loadstats.LoadStatsRequest{Node: &core.Node{Id: id}}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil || !answer.GetSendAllClusters() || answer.GetLoadReportingInterval().AsDuration() != time.Second {
		t.Fatalf("%v %v", answer, err)
	}
	return proxy{t, stream, leave}
}

// reports says how many requests are in progress, by member cluster.
func (p proxy) reports(cluster string, inProgress map[string]uint64) {
	p.t.Helper()
	stats := &endpoint.ClusterStats{ClusterName: cluster, LoadReportInterval: durationpb.New(time.Second)}
	for zone, n := range inProgress {
		stats.UpstreamLocalityStats = append(stats.UpstreamLocalityStats, &endpoint.UpstreamLocalityStats{
			Locality: &core.Locality{Zone: zone}, TotalRequestsInProgress: n, TotalIssuedRequests: 2 * n, TotalSuccessfulRequests: n, TotalErrorRequests: 1})
	}
	if err := p.stream.Send(&loadstats.LoadStatsRequest{ClusterStats: []*endpoint.ClusterStats{stats}}); err != nil {
		p.t.Fatal(err)
	}
}

// await reads signals until each cluster's newest has so many requests in progress.
func await(t *testing.T, signals <-chan health.Reported, want map[policies.ClusterName]uint64) {
	t.Helper()
	newest := map[policies.ClusterName]health.Reported{}
	deadline := time.After(20 * time.Second)
	for {
		same := true
		for cluster, n := range want {
			got, ok := newest[cluster]
			same = same && ok && got.InProgress == n
		}
		if same {
			return
		}
		select {
		case s := <-signals:
			if s.Service != "llama" || s.Class != "eu" || s.Viewpoint != "gateway/r/here" || s.Interval != time.Second || s.At.IsZero() {
				t.Fatalf("%+v", s)
			}
			newest[s.Cluster] = s
		case <-deadline:
			t.Fatalf("have %+v, want %v", newest, want)
		}
	}
}

func TestReportsOfAViewpointsProxiesAreSummed(t *testing.T) {
	client, signals := running(t)
	a, b := connect(t, client, "a"), connect(t, client, "b")
	a.reports("class/llama/eu", map[string]uint64{"fra": 3, "dub": 1})
	await(t, signals, map[policies.ClusterName]uint64{"fra": 3, "dub": 1})
	b.reports("class/llama/eu", map[string]uint64{"fra": 4})
	await(t, signals, map[policies.ClusterName]uint64{"fra": 7})
	a.reports("class/llama/eu", map[string]uint64{"fra": 1}) // no more in dublin
	await(t, signals, map[policies.ClusterName]uint64{"fra": 5, "dub": 0})
	b.leave()
	await(t, signals, map[policies.ClusterName]uint64{"fra": 1})
}

// Envoy stops to mention a class cluster that it was told to remove: no demand of it may stay behind.
func TestClassThatIsNoLongerReportedCountsNoMore(t *testing.T) {
	client, signals := running(t)
	a, b := connect(t, client, "a"), connect(t, client, "b")
	a.reports("class/llama/eu", map[string]uint64{"fra": 3})
	await(t, signals, map[policies.ClusterName]uint64{"fra": 3})
	b.reports("class/llama/eu", map[string]uint64{"fra": 4})
	await(t, signals, map[policies.ClusterName]uint64{"fra": 7})
	a.reports("pool/llama/fra", map[string]uint64{"fra": 3})
	await(t, signals, map[policies.ClusterName]uint64{"fra": 4})
	b.reports("pool/llama/fra", nil)
	await(t, signals, map[policies.ClusterName]uint64{"fra": 0})
}

// A cluster that gets no requests is reported as zeros for as long as its class is mentioned: silence would mean that the
// proxy can't be heard.
func TestIdleClusterIsReportedAsZeros(t *testing.T) {
	client, signals := running(t)
	a := connect(t, client, "a")
	a.reports("class/llama/eu", map[string]uint64{"fra": 3})
	await(t, signals, map[policies.ClusterName]uint64{"fra": 3})
	for range 3 {
		a.reports("class/llama/eu", nil)
		await(t, signals, map[policies.ClusterName]uint64{"fra": 0})
	}
}

func TestWhatIsBehindAClassClusterDoesNotCountTwice(t *testing.T) {
	client, signals := running(t)
	a := connect(t, client, "a")
	a.reports("pool/llama/fra", map[string]uint64{"fra": 9})
	a.reports("class/llama/eu", map[string]uint64{"fra": 1})
	await(t, signals, map[policies.ClusterName]uint64{"fra": 1})
}

func TestUnknownProxiesAreTurnedAway(t *testing.T) {
	client, _ := running(t)
	stream, err := client.StreamLoadStats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&loadstats.LoadStatsRequest{Node: &core.Node{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err == nil {
		t.Error("served")
	}
}
