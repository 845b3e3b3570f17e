package probe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/health/probe"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// BenchmarkProbe measures what one HTTP probe costs, with its answer in the same process: there are more targets than
// can be probed in their intervals.
func BenchmarkProbe(b *testing.B) {
	outcomes := make(chan health.Signal)
	p, err := probe.New(probe.Config{Deliver: func(s health.Signal) { outcomes <- s }, Workers: 64})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	check := policies.HealthCheck{
		Type: policies.HealthHTTP, Path: "/", Interval: policies.Duration(time.Millisecond), Timeout: policies.Duration(time.Second),
	}
	var targets []probe.Target
	for i := range 64 {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		b.Cleanup(server.Close)
		cluster := policies.ClusterName(fmt.Sprint("cluster-", i))
		targets = append(targets, probe.Target{
			Endpoint: world.EndpointKey{
				Pool: world.PoolKey{Service: "chat", Cluster: cluster}, Address: netip.MustParseAddrPort(server.Listener.Addr().String()),
			},
			Check: check,
		})
	}
	p.Update(targets)
	b.ReportAllocs()
	for b.Loop() {
		<-outcomes
	}
	cancel()
	for {
		select {
		case <-outcomes:
		case <-ended:
			return
		}
	}
}
