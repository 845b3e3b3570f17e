package probe_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/health/probe"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var pool = world.PoolKey{Service: "chat", Cluster: "fra"}

// prober runs a Prober for the test and gives its outcomes.
func prober(t *testing.T) (*probe.Prober, <-chan health.Probed) {
	t.Helper()
	outcomes := make(chan health.Probed, 1024)
	p, err := probe.New(probe.Config{Deliver: func(s health.Signal) {
		select {
		case outcomes <- s.(health.Probed):
		default: // the test has seen enough
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return p, outcomes
}

// target is probed often, so that tests are quick; its timeout is long where nothing is silent.
func target(address net.Addr, check policies.HealthCheck) probe.Target {
	check.Interval = policies.Duration(10 * time.Millisecond)
	if check.Timeout == 0 {
		check.Timeout = policies.Duration(time.Minute)
	}
	return probe.Target{Endpoint: world.EndpointKey{Pool: pool, Address: netip.MustParseAddrPort(address.String())}, Check: check}
}

// next is the next outcome.
func next(t *testing.T, outcomes <-chan health.Probed) health.Probed {
	t.Helper()
	select {
	case o := <-outcomes:
		return o
	case <-time.After(30 * time.Second):
		t.Fatal("no outcome")
		return health.Probed{}
	}
}

// until waits for an outcome that is wanted.
func until(t *testing.T, outcomes <-chan health.Probed, wanted func(health.Probed) bool) {
	t.Helper()
	for range 10_000 {
		if wanted(next(t, outcomes)) {
			return
		}
	}
	t.Fatal("among ten thousand outcomes there was none that is wanted")
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// 1. A server answers 200 at the path: up. 2. It answers 503: down, and why. 3. It is back: up.
func TestHTTP(t *testing.T) {
	var status atomic.Int32
	status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" {
			t.Errorf("asked for %s", r.URL)
		}
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(server.Close)
	p, outcomes := prober(t)
	at := target(server.Listener.Addr(), policies.HealthCheck{Type: policies.HealthHTTP, Path: "/health"})
	p.Update([]probe.Target{at})
	first := next(t, outcomes)
	if first.At.IsZero() {
		t.Error("an outcome without a time")
	}
	if diff := cmp.Diff(health.Probed{Endpoint: at.Endpoint, OK: true, At: first.At}, first, compareKeys); diff != "" {
		t.Errorf("first outcome (-want +got):\n%s", diff)
	}
	status.Store(http.StatusServiceUnavailable)
	until(t, outcomes, func(o health.Probed) bool { return !o.OK && o.Cause == "status 503" })
	status.Store(http.StatusOK)
	until(t, outcomes, func(o health.Probed) bool { return o.OK })
	if s := p.Stats(); s.Targets != 1 || s.Succeeded < 2 || s.Failed < 1 {
		t.Errorf("stats are %+v", s)
	}
}

var compareKeys = cmp.Comparer(func(a, b world.EndpointKey) bool { return a == b })

// 1. The service is not serving. 2. It serves. 3. A service that the server doesn't know is down.
func TestGRPC(t *testing.T) {
	listener := listen(t)
	server, services := grpc.NewServer(), grpchealth.NewServer()
	healthv1.RegisterHealthServer(server, services)
	services.SetServingStatus("chat.v1", healthv1.HealthCheckResponse_NOT_SERVING)
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
	p, outcomes := prober(t)
	p.Update([]probe.Target{target(listener.Addr(), policies.HealthCheck{Type: policies.HealthGRPC, Service: "chat.v1"})})
	if got := next(t, outcomes); got.OK || got.Cause != "the server says NOT_SERVING" {
		t.Errorf("a service that is not serving gave %+v", got)
	}
	services.SetServingStatus("chat.v1", healthv1.HealthCheckResponse_SERVING)
	until(t, outcomes, func(o health.Probed) bool { return o.OK })
	p.Update([]probe.Target{target(listener.Addr(), policies.HealthCheck{Type: policies.HealthGRPC, Service: "none.v1"})})
	until(t, outcomes, func(o health.Probed) bool { return !o.OK && strings.HasPrefix(o.Cause, "NotFound") })
	p.Update([]probe.Target{target(listener.Addr(), policies.HealthCheck{Type: policies.HealthGRPC})})
	until(t, outcomes, func(o health.Probed) bool { return o.OK })
}

// 1. Something listens: up. 2. Nothing listens any more: down at once, not after the timeout.
func TestTCP(t *testing.T) {
	listener := listen(t)
	p, outcomes := prober(t)
	p.Update([]probe.Target{target(listener.Addr(), policies.HealthCheck{Type: policies.HealthTCP})})
	if got := next(t, outcomes); !got.OK {
		t.Errorf("a listening server gave %+v", got)
	}
	listener.Close()
	until(t, outcomes, func(o health.Probed) bool { return !o.OK && o.Cause == "connection refused" })
}

func TestRefusingAndSilentServersAreDown(t *testing.T) {
	closed := listen(t)
	closed.Close()
	silent := listen(t) // accepts in the kernel, and never answers
	for _, c := range []struct {
		name    string
		address net.Addr
		check   policies.HealthCheck
		cause   string
	}{
		{"HTTP, refused", closed.Addr(), policies.HealthCheck{Type: policies.HealthHTTP, Path: "/"}, "connection refused"},
		{"gRPC, refused", closed.Addr(), policies.HealthCheck{Type: policies.HealthGRPC}, "connection refused"},
		{"HTTP, silent", silent.Addr(), policies.HealthCheck{Type: policies.HealthHTTP, Path: "/", Timeout: policies.Duration(50 * time.Millisecond)}, "no answer within 50ms"},
		{"gRPC, silent", silent.Addr(), policies.HealthCheck{Type: policies.HealthGRPC, Timeout: policies.Duration(50 * time.Millisecond)}, "no answer within 50ms"},
		{"a type that is none", closed.Addr(), policies.HealthCheck{Type: "ICMP"}, `"ICMP" is not known`},
		{"a path that is none", closed.Addr(), policies.HealthCheck{Type: policies.HealthHTTP, Path: "/%zz"}, `invalid URL escape "%zz"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, outcomes := prober(t)
			p.Update([]probe.Target{target(c.address, c.check)})
			if got := next(t, outcomes); got.OK || !strings.Contains(got.Cause, c.cause) {
				t.Errorf("outcome %+v, want the cause %q", got, c.cause)
			}
		})
	}
}

// A process that is stopped keeps its connections: a probe on the one kept from before must fail in its time all the
// same, and so must the next, on another.
func TestAServerThatStopsAnsweringOnItsConnectionIsDown(t *testing.T) {
	answers := make(chan struct{}, 1)
	answers <- struct{}{}
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case <-answers:
		case <-ctx.Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(cancel)
	p, outcomes := prober(t)
	p.Update([]probe.Target{target(server.Listener.Addr(), policies.HealthCheck{
		Type: policies.HealthHTTP, Path: "/", Timeout: policies.Duration(100 * time.Millisecond),
	})})
	until(t, outcomes, func(o health.Probed) bool { return o.OK })
	for range 2 {
		if got := next(t, outcomes); got.OK || got.Cause != "no answer within 100ms" {
			t.Errorf("a server that has stopped gave %+v", got)
		}
	}
}

func TestTargetsAreAllEndpointsThatCanBeProbed(t *testing.T) {
	check := policies.HealthCheck{Type: policies.HealthTCP, Interval: 1}
	address := policies.Address{Address: netip.MustParseAddr("10.0.0.1"), Port: 80}
	service := policies.Service{Metadata: policies.Metadata[policies.ServiceName]{Name: "chat"}}
	service.Spec.Health = check
	service.Spec.Pools = []policies.Pool{{Cluster: "fra", Endpoints: []policies.Address{address}}, {Cluster: "iad"}}
	want := []probe.Target{{Endpoint: world.EndpointKey{Pool: pool, Address: netip.MustParseAddrPort("10.0.0.1:80")}, Check: check}}
	var w world.Writer
	now, _ := w.Commit([]world.Fact{world.PoliciesLoaded{Set: &policies.Set{Services: []policies.Service{service}}}})
	if diff := cmp.Diff(want, probe.Targets(now), compareKeys); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	if got := probe.Targets(&world.World{}); len(got) != 0 {
		t.Errorf("without policies there are targets: %v", got)
	}
}

func TestNewNeedsSomeoneToDeliverTo(t *testing.T) {
	if _, err := probe.New(probe.Config{}); err == nil || !strings.Contains(err.Error(), "Config.Deliver") {
		t.Errorf("the error is %v", err)
	}
}
