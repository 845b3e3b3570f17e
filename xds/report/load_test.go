package report

import (
	"math"
	"testing"

	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/world"
)

func TestWhatServersSayOfThemselvesIsRead(t *testing.T) {
	named := func(name string, sum float64, count uint64) *endpoint.EndpointLoadMetricStats {
		return &endpoint.EndpointLoadMetricStats{MetricName: name, TotalMetricValue: sum, NumRequestsFinishedWithMetric: count}
	}
	got := loadIn(&endpoint.UpstreamLocalityStats{
		CpuUtilization:         &endpoint.UnnamedEndpointLoadMetricStats{TotalMetricValue: 3, NumRequestsFinishedWithMetric: 4},
		ApplicationUtilization: &endpoint.UnnamedEndpointLoadMetricStats{TotalMetricValue: math.NaN(), NumRequestsFinishedWithMetric: 4},
		LoadMetricStats: []*endpoint.EndpointLoadMetricStats{
			named("named_metrics.kv_cache_usage_perc", 1, 2), named("named_metrics.num_requests_waiting", 12, 4), named("mem_utilization", 0.5, 1),
			named("named_metrics.of_others", 9, 9), named("cpu_utilization", 1, 1), named("named_metrics.num_requests_waiting", -5, 1),
		},
	})
	want := world.ServerLoad{CPU: world.Mean{Sum: 4, Count: 5}, Memory: world.Mean{Sum: 0.5, Count: 1}, KVCacheUse: world.Mean{Sum: 1, Count: 2}, Waiting: world.Mean{Sum: 12, Count: 4}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if v, ok := got.KVCacheUse.Value(); !ok || v != 0.5 {
		t.Errorf("the KV cache is used to %v, %v", v, ok)
	}
	if _, ok := got.Application.Value(); ok {
		t.Error("what is no number has an average")
	}
}
