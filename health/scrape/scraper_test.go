package scrape_test

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

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/health/scrape"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var compareKeys = cmp.Comparer(func(a, b world.EndpointKey) bool { return a == b })

// scraper runs a Scraper for the test and gives what it read.
func scraper(t *testing.T, timeout time.Duration) (*scrape.Scraper, <-chan health.Scraped) {
	t.Helper()
	read := make(chan health.Scraped, 1024)
	s, err := scrape.New(scrape.Config{Timeout: timeout, Deliver: func(s health.Signal) {
		select {
		case read <- s.(health.Scraped):
		default: // the test has seen enough
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, read
}

// target is an endpoint whose metrics are at another address than its own, scraped often so that tests are quick.
func target(metrics net.Addr) scrape.Target {
	return scrape.Target{
		Endpoint: world.EndpointKey{Pool: world.PoolKey{Service: "chat", Cluster: "fra"}, Address: netip.MustParseAddrPort("127.0.0.1:8000")},
		Address:  netip.MustParseAddrPort(metrics.String()), Path: "/metrics", Interval: 10 * time.Millisecond,
	}
}

// until waits for a scrape that is wanted.
func until(t *testing.T, read <-chan health.Scraped, wanted func(health.Scraped) bool) health.Scraped {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case s := <-read:
			if wanted(s) {
				return s
			}
		case <-deadline:
			t.Fatal("no scrape came that is wanted")
		}
	}
}

func good(s health.Scraped) bool { return s.Err == "" }

// 1. The server's metrics are read. 2. It fails, and the scrape says how. 3. It is back.
func TestScraperReadsMetricsAgainAndAgain(t *testing.T) {
	var broken atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		http.ServeFile(w, r, "testdata/vllm.prom")
	}))
	t.Cleanup(server.Close)
	s, read := scraper(t, time.Minute)
	at := target(server.Listener.Addr())
	s.Update([]scrape.Target{at})
	first := until(t, read, good)
	if first.At.IsZero() {
		t.Error("a scrape without a time")
	}
	want := health.Scraped{Endpoint: at.Endpoint, Running: 21, Waiting: 3, KVCacheUse: 0.4375, At: first.At}
	if diff := cmp.Diff(want, first, compareKeys); diff != "" {
		t.Errorf("first scrape (-want +got):\n%s", diff)
	}
	broken.Store(true)
	until(t, read, func(s health.Scraped) bool { return s.Err == "status 500" && s.Running == 0 })
	broken.Store(false)
	until(t, read, good)
	if s := s.Stats(); s.Targets != 1 || s.Succeeded < 2 || s.Failed < 1 {
		t.Errorf("stats are %+v", s)
	}
}

func TestScraperSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		timeout time.Duration
		want    string
	}{
		{"no metrics", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }, time.Minute, "metric is missing: vllm:num_requests_running"},
		{"silence", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 50 * time.Millisecond, "no answer within 50ms"},
		{
			"no end",
			func(w http.ResponseWriter, _ *http.Request) {
				line := []byte(strings.Repeat("x", 1023) + "\n")
				for {
					if _, err := w.Write(line); err != nil {
						return
					}
				}
			},
			time.Minute, "metrics are too large: more than 8388608 bytes",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(c.handler)
			t.Cleanup(server.Close)
			s, read := scraper(t, c.timeout)
			s.Update([]scrape.Target{target(server.Listener.Addr())})
			got := until(t, read, func(s health.Scraped) bool { return s.Err != "" })
			if !strings.HasPrefix(got.Err, c.want) {
				t.Errorf("the error is %q, want %q", got.Err, c.want)
			}
		})
	}
}

func TestTargetsAreServicesThatAreScraped(t *testing.T) {
	pools := []policies.Pool{{Cluster: "fra", Endpoints: []policies.Address{{Address: netip.MustParseAddr("10.0.0.1"), Port: 8000}}}}
	service := func(name policies.ServiceName, c policies.Capacity) policies.Service {
		return policies.Service{
			Metadata: policies.Metadata[policies.ServiceName]{Name: name},
			Spec:     policies.ServiceSpec{Pools: pools, Capacity: c},
		}
	}
	second := policies.Duration(time.Second)
	set := &policies.Set{Services: []policies.Service{
		service("chat", policies.Capacity{Source: policies.CapacityVLLM, MetricsPath: "/metrics", Interval: second}),
		service("database", policies.Capacity{Source: policies.CapacityStatic}),
		service("embed", policies.Capacity{Source: policies.CapacityVLLM, MetricsPath: "/m", MetricsPort: 9000, Interval: second}),
	}}
	own := netip.MustParseAddrPort("10.0.0.1:8000")
	endpoint := func(s policies.ServiceName) world.EndpointKey {
		return world.EndpointKey{Pool: world.PoolKey{Service: s, Cluster: "fra"}, Address: own}
	}
	want := []scrape.Target{
		{Endpoint: endpoint("chat"), Address: own, Path: "/metrics", Interval: time.Second},
		{Endpoint: endpoint("embed"), Address: netip.MustParseAddrPort("10.0.0.1:9000"), Path: "/m", Interval: time.Second},
	}
	same := cmp.Comparer(func(a, b scrape.Target) bool { return a == b })
	var w world.Writer
	now, _ := w.Commit([]world.Fact{world.PoliciesLoaded{Set: set}})
	if diff := cmp.Diff(want, scrape.Targets(now), same); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	if got := scrape.Targets(&world.World{}); len(got) != 0 {
		t.Errorf("without policies there are targets: %v", got)
	}
}

func TestNewNeedsSomeoneToDeliverTo(t *testing.T) {
	if _, err := scrape.New(scrape.Config{}); err == nil || !strings.Contains(err.Error(), "Config.Deliver") {
		t.Errorf("the error is %v", err)
	}
}
