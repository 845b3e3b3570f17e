package controlplane

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/meridian-mesh/meridian/internal/pipeline"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/cache"
	"github.com/meridian-mesh/meridian/xds/serve"
)

// metrics are what /metrics shows. Counters and histograms are kept; gauges are read from the plane when asked.
type metrics struct {
	registry    *prometheus.Registry
	pushes      *prometheus.CounterVec
	pushBytes   *prometheus.CounterVec
	nacks       *prometheus.CounterVec
	rejections  *prometheus.CounterVec
	quarantines prometheus.Counter
	convergence *prometheus.HistogramVec
	stages      *prometheus.HistogramVec
	published   prometheus.Counter
	refused     prometheus.Counter
	policyLoads *prometheus.CounterVec
	stateErrors prometheus.Counter
	stateBytes  prometheus.Counter
}

// fine are buckets from half a millisecond to ten seconds.
var fine = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

func newMetrics(p *Plane) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help, label string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: fine}, []string{label})
	}
	m := &metrics{
		registry:    prometheus.NewRegistry(),
		pushes:      counter("meridian_xds_pushes_total", "Responses sent to proxies.", "type"),
		pushBytes:   counter("meridian_xds_push_bytes_total", "Bytes of resources sent to proxies.", "type"),
		nacks:       counter("meridian_xds_nacks_total", "Responses that proxies refused.", "type"),
		rejections:  counter("meridian_xds_streams_rejected_total", "Streams of proxies that were turned away or cut off.", "reason"),
		quarantines: prometheus.NewCounter(prometheus.CounterOpts{Name: "meridian_xds_quarantines_total", Help: "Snapshots that were withdrawn because a proxy refused them."}),
		convergence: histogram("meridian_xds_convergence_seconds", "Time from a change coming in to a proxy accepting what follows from it.", "type"),
		stages:      histogram("meridian_cycle_stage_seconds", "Time that a stage of a cycle of the loop took.", "stage"),
		published:   prometheus.NewCounter(prometheus.CounterOpts{Name: "meridian_snapshots_published_total", Help: "Snapshots published."}),
		refused:     prometheus.NewCounter(prometheus.CounterOpts{Name: "meridian_snapshots_refused_total", Help: "Snapshots that verify refused."}),
		policyLoads: counter("meridian_policy_loads_total", "Readings of the policy folder.", "outcome"),
		stateErrors: prometheus.NewCounter(prometheus.CounterOpts{Name: "meridian_state_errors_total", Help: "Failures to keep what is published in the state folder, or to restore it."}),
		stateBytes:  prometheus.NewCounter(prometheus.CounterOpts{Name: "meridian_state_written_bytes_total", Help: "Bytes written to the state folder."}),
	}
	m.registry.MustRegister(m.pushes, m.pushBytes, m.nacks, m.rejections, m.quarantines, m.convergence, m.stages, m.published, m.refused, m.policyLoads, m.stateErrors, m.stateBytes,
		gauges{p}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) pushed(p serve.Push) {
	m.pushes.WithLabelValues(p.Type.Short()).Inc()
	m.pushBytes.WithLabelValues(p.Type.Short()).Add(float64(p.Bytes))
}

func (m *metrics) answered(a serve.Answer) {
	if a.Refused {
		m.nacks.WithLabelValues(a.Type.Short()).Inc()
		return
	}
	if !a.Since.IsZero() {
		m.convergence.WithLabelValues(a.Type.Short()).Observe(time.Since(a.Since).Seconds())
	}
}

func (m *metrics) turnedAway(r serve.Rejection) { m.rejections.WithLabelValues(string(r)).Inc() }

func (m *metrics) cycled(c pipeline.Cycle) {
	m.stages.WithLabelValues("plan").Observe(c.Plan.Seconds())
	m.stages.WithLabelValues("build").Observe(c.Build.Seconds())
	m.stages.WithLabelValues("verify").Observe(c.Verify.Seconds())
	m.published.Add(float64(c.Published))
	m.refused.Add(float64(c.Refused))
}

func (m *metrics) stateWritten(w cache.StoreWrite) {
	if w.Err != nil {
		m.stateErrors.Inc()
	}
	m.stateBytes.Add(float64(w.Bytes))
}

// gauges read the plane as it is.
type gauges struct{ plane *Plane }

var (
	proxiesDesc   = describe("meridian_proxies", "Connected proxies by state.", "state")
	endpointsDesc = describe("meridian_endpoints", "Endpoints of a pool by verdict.", "service", "cluster", "verdict")
	slotsDesc     = describe("meridian_pool_slots", "Requests that the usable endpoints of a pool serve at a time.", "service", "cluster")
	freeDesc      = describe("meridian_pool_free_slots", "Requests that a pool could still take.", "service", "cluster")
	probesDesc    = describe("meridian_probes_total", "Probes of endpoints by outcome.", "outcome")
	scrapesDesc   = describe("meridian_scrapes_total", "Scrapes of endpoints' metrics by outcome.", "outcome")
	geoDesc       = describe("meridian_geo_cache_lookups_total", "Lookups of locations by what the cache had.", "result")
	pendingDesc   = describe("meridian_xds_streams_pending", "Streams that have something newer waiting to be sent.")
	heldDesc      = describe("meridian_viewpoints_quarantined", "Viewpoints whose newest configuration is not served because a proxy refused it.")
	staleDesc     = describe("meridian_proxies_stale", "Connected proxies that are served what was published before the control plane started.")
	behindDesc    = describe("meridian_state_behind", "1 while something that is published is not in the state folder.")
	heardDesc     = describe("meridian_cluster_heard_timestamp_seconds", "When a member cluster's API server last answered.", "cluster")
	troubledDesc  = describe("meridian_cluster_problems", "Things of a member cluster that can't be read now.", "cluster")
	devicesDesc   = describe("meridian_cluster_accelerators", "Accelerators of a cluster by state: used, pending, free, and barred ones on nodes that don't count.", "cluster", "product", "class", "resource", "state")
	fitDesc       = describe("meridian_pool_replicas_fit", "Replicas of a pool's servers that would find free accelerators, beyond those that are there.", "service", "cluster")
	refusedDesc   = describe("meridian_viewpoints_refused", "Viewpoints whose newest configuration verify holds back.")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe sends the descriptions of what Collect sends.
func (g gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{proxiesDesc, endpointsDesc, slotsDesc, freeDesc, probesDesc, scrapesDesc, geoDesc, refusedDesc, pendingDesc, heldDesc, staleDesc, behindDesc, heardDesc, troubledDesc, devicesDesc, fitDesc} {
		out <- d
	}
}

// Collect sends the values of now.
func (g gauges) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	states := map[serve.State]int{serve.Synced: 0, serve.Pending: 0, serve.Nacked: 0}
	stale := 0
	for _, p := range g.plane.Proxies() {
		states[p.State]++
		if p.Stale {
			stale++
		}
	}
	gauge(staleDesc, stale)
	if g.plane.config.StateDir != "" {
		gauge(behindDesc, g.plane.behind())
	}
	gauge(pendingDesc, g.plane.serve.Pending())
	for state, n := range states {
		gauge(proxiesDesc, n, string(state))
	}
	state := g.plane.State()
	gauge(refusedDesc, len(state.Refused))
	gauge(heldDesc, len(state.Withheld))
	for _, pool := range state.World.Pools() {
		g.pool(gauge, state.World, pool)
	}
	g.accelerators(gauge, state.World)
	g.clusters(out)
	probes, scrapes, lookups := g.plane.prober.Stats(), g.plane.scraper.Stats(), g.plane.geo.Stats()
	counter(probesDesc, probes.Succeeded, "success")
	counter(probesDesc, probes.Failed, "failure")
	counter(scrapesDesc, scrapes.Succeeded, "success")
	counter(scrapesDesc, scrapes.Failed, "failure")
	counter(geoDesc, lookups.Hits, "hit")
	counter(geoDesc, lookups.Misses, "miss")
}

// clusters are those that are read from their API servers.
func (g gauges) clusters(out chan<- prometheus.Metric) {
	for _, c := range g.plane.kube.Status() {
		heard := 0.0
		if !c.Heard.IsZero() {
			heard = float64(c.Heard.UnixMilli()) / 1000
		}
		out <- prometheus.MustNewConstMetric(heardDesc, prometheus.GaugeValue, heard, string(c.Cluster))
		out <- prometheus.MustNewConstMetric(troubledDesc, prometheus.GaugeValue, float64(len(c.Problems)), string(c.Cluster))
	}
}

// accelerators are those of clusters in which they were counted. Rows that differ only in how many share a device are one series.
func (g gauges) accelerators(gauge func(*prometheus.Desc, int, ...string), w *world.World) {
	if w.Policies() == nil {
		return
	}
	type series struct{ cluster, product, class, resource, state string }
	sums := map[series]int64{}
	for _, a := range acceleratorsIn(w) {
		for _, r := range a.Rows {
			for state, n := range map[string]int64{"used": r.Used, "pending": r.Pending, "free": r.Free, "barred": r.Barred} {
				sums[series{string(a.Cluster), r.Product, string(r.Class), r.Resource, state}] += n
			}
		}
	}
	for s, n := range sums {
		gauge(devicesDesc, int(n), s.cluster, s.product, s.class, s.resource, s.state)
	}
}

func (g gauges) pool(gauge func(*prometheus.Desc, int, ...string), w *world.World, pool *world.Pool) {
	service, ok := w.Policies().Service(pool.Key.Service)
	if !ok {
		return
	}
	h := pool.Headroom(service.Spec.Capacity)
	labels := []string{string(pool.Key.Service), string(pool.Key.Cluster)}
	gauge(endpointsDesc, h.Healthy, append(labels, "healthy")...)
	gauge(endpointsDesc, h.Unknown, append(labels, "unknown")...)
	gauge(endpointsDesc, h.Total-h.Healthy-h.Unknown, append(labels, "unhealthy")...)
	gauge(slotsDesc, h.Slots, labels...)
	gauge(freeDesc, h.Free, labels...)
	if pool.Replicas != nil {
		gauge(fitDesc, int(pool.Replicas.Fit), labels...)
	}
}
