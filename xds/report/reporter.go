package report

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	loadstats "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// Config configures a Reporter.
type Config struct {
	// Deliver takes each signal. It must not block. Required.
	Deliver func(health.Signal)
	// Viewpoint reads the viewpoint that a node claims, as xds/serve does. Required.
	Viewpoint func(*core.Node) (world.Viewpoint, error)
	// Interval is how often proxies report. Default 1s.
	Interval time.Duration
	// Log defaults to slog's default.
	Log *slog.Logger
}

// Reporter serves Envoy's load reporting service.
type Reporter struct {
	loadstats.UnimplementedLoadReportingServiceServer

	// Set once.
	config Config

	mu     sync.Mutex
	newest map[key]map[stream]health.Reported // under mu: each proxy's newest report
}

// key is what reports are summed by.
type key struct {
	demand  world.DemandKey
	cluster policies.ClusterName
}

// stream is one proxy's connection; its address is its identity.
type stream *struct{ _ byte }

// New makes a Reporter.
func New(config Config) (*Reporter, error) {
	if config.Deliver == nil || config.Viewpoint == nil {
		return nil, errors.New("report: Config.Deliver and Config.Viewpoint are required")
	}
	if config.Interval <= 0 {
		config.Interval = time.Second
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	return &Reporter{config: config, newest: map[key]map[stream]health.Reported{}}, nil
}

// Register offers the load reporting service.
func (r *Reporter) Register(s grpc.ServiceRegistrar) {
	loadstats.RegisterLoadReportingServiceServer(s, r)
}

// StreamLoadStats takes one proxy's reports until it goes.
func (r *Reporter) StreamLoadStats(s loadstats.LoadReportingService_StreamLoadStatsServer) error {
	first, err := s.Recv()
	if err != nil {
		return endOf(err)
	}
	viewpoint, err := r.config.Viewpoint(first.GetNode())
	if err != nil {
		r.config.Log.Warn("load reports turned away", "error", err)
		return err
	}
	answer := &loadstats.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(r.config.Interval)}
	if err := s.Send(answer); err != nil {
		return err
	}
	me := stream(&struct{ _ byte }{})
	defer r.forget(me)
	for {
		request, err := s.Recv()
		if err != nil {
			return endOf(err)
		}
		now := time.Now()
		for _, c := range request.GetClusterStats() {
			r.take(me, viewpoint.ID(), c, now)
		}
	}
}

func endOf(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// take works in what a proxy says of one Envoy cluster. Those that are no class clusters are passed over: they are behind
// one, and would count twice.
func (r *Reporter) take(me stream, viewpoint world.ViewpointID, c *endpoint.ClusterStats, now time.Time) {
	service, class, ok := xds.ParseClassCluster(c.GetClusterName())
	if !ok {
		return
	}
	sums := map[policies.ClusterName]health.Reported{}
	for _, l := range c.GetUpstreamLocalityStats() {
		cluster := policies.ClusterName(l.GetLocality().GetZone())
		sum := sums[cluster]
		sum.Succeeded += l.GetTotalSuccessfulRequests()
		sum.Failed += l.GetTotalErrorRequests()
		sum.Issued += l.GetTotalIssuedRequests()
		sum.InProgress += l.GetTotalRequestsInProgress()
		sums[cluster] = sum
	}
	demand := world.DemandKey{Viewpoint: viewpoint, Service: service, Class: class}
	for cluster, sum := range sums {
		sum.Interval = c.GetLoadReportInterval().AsDuration()
		r.store(me, key{demand, cluster}, sum)
	}
	r.deliver(me, demand, sums, now)
}

// deliver hands on the sums of a demand. A cluster that this proxy used and no longer mentions gets zeros from it.
func (r *Reporter) deliver(me stream, demand world.DemandKey, mentioned map[policies.ClusterName]health.Reported, now time.Time) {
	r.mu.Lock()
	var signals []health.Reported
	for k, proxies := range r.newest {
		if k.demand != demand {
			continue
		}
		if _, ok := mentioned[k.cluster]; !ok {
			if mine, had := proxies[me]; had {
				proxies[me] = health.Reported{Interval: mine.Interval}
			}
		}
		signals = append(signals, r.sumLocked(k, now))
	}
	r.mu.Unlock()
	for _, s := range signals {
		r.config.Deliver(s)
	}
}

func (r *Reporter) store(me stream, k key, report health.Reported) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newest[k] == nil {
		r.newest[k] = map[stream]health.Reported{}
	}
	r.newest[k][me] = report
}

// sumLocked adds up the newest reports of all proxies.
func (r *Reporter) sumLocked(k key, now time.Time) health.Reported {
	sum := health.Reported{Viewpoint: k.demand.Viewpoint, Service: k.demand.Service, Class: k.demand.Class, Cluster: k.cluster, At: now}
	for _, one := range r.newest[k] {
		sum.Succeeded += one.Succeeded
		sum.Failed += one.Failed
		sum.Issued += one.Issued
		sum.InProgress += one.InProgress
		sum.Interval = max(sum.Interval, one.Interval)
	}
	return sum
}

// forget takes a proxy that has gone out of the sums.
func (r *Reporter) forget(me stream) {
	now := time.Now()
	r.mu.Lock()
	var signals []health.Reported
	for k, proxies := range r.newest {
		gone, had := proxies[me]
		if !had {
			continue
		}
		delete(proxies, me)
		sum := r.sumLocked(k, now)
		sum.Interval = max(sum.Interval, gone.Interval)
		signals = append(signals, sum)
		if len(proxies) == 0 {
			delete(r.newest, k)
		}
	}
	r.mu.Unlock()
	for _, s := range signals {
		r.config.Deliver(s)
	}
}
