package report

import (
	"math"

	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// loadIn is what servers said of themselves in the responses that a report is about. Envoy names each metric as it was asked to in
// lrs_report_endpoint_metrics; the three that ORCA itself names have fields of their own, or come by name.
func loadIn(l *endpoint.UpstreamLocalityStats) world.ServerLoad {
	load := world.ServerLoad{
		CPU: mean(l.GetCpuUtilization()), Memory: mean(l.GetMemUtilization()), Application: mean(l.GetApplicationUtilization()),
	}
	for _, m := range l.GetLoadMetricStats() {
		at := map[string]*world.Mean{
			xds.MetricCPU: &load.CPU, xds.MetricMemory: &load.Memory, xds.MetricApplication: &load.Application,
			xds.MetricKVCache: &load.KVCacheUse, xds.MetricWaiting: &load.Waiting,
		}[m.GetMetricName()]
		if at != nil {
			*at = at.Plus(mean(m))
		}
	}
	return load
}

// mean reads a sum of values and how many there are. A server may say what it likes: what is no number, or below nothing, says nothing.
func mean(m interface {
	GetNumRequestsFinishedWithMetric() uint64
	GetTotalMetricValue() float64
}) world.Mean {
	sum, count := m.GetTotalMetricValue(), m.GetNumRequestsFinishedWithMetric()
	if count == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) || sum < 0 {
		return world.Mean{}
	}
	return world.Mean{Sum: sum, Count: count}
}
