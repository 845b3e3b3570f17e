package report

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
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
	// Deliver takes each signal, one at a time. It must not block, nor call the Reporter. Required.
	Deliver func(health.Signal)
	// Viewpoint reads the viewpoint that a node claims, as xds/serve does. Required.
	Viewpoint func(*core.Node) (world.Viewpoint, error)
	// Authenticate says whether a stream's peer may have the viewpoint that it claims; the error has a gRPC status. Default:
	// everyone may.
	Authenticate func(ctx context.Context, claimed world.Viewpoint) (identity string, err error)
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
	newest map[subject]map[*source]health.Reported // under mu: each proxy's newest report
}

// subject is what reports are summed by.
type subject struct {
	demand  world.DemandKey
	cluster policies.ClusterName
}

func (s subject) compare(o subject) int {
	return cmp.Or(s.demand.Compare(o.demand), cmp.Compare(s.cluster, o.cluster))
}

// source is one connected proxy. Its stream's goroutine owns it; its address is its identity.
type source struct {
	viewpoint world.ViewpointID
	// newest is what it reported last.
	newest map[subject]health.Reported
}

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
	return &Reporter{config: config, newest: map[subject]map[*source]health.Reported{}}, nil
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
	if err == nil && r.config.Authenticate != nil {
		_, err = r.config.Authenticate(s.Context(), viewpoint)
	}
	if err != nil {
		r.config.Log.Warn("load reports turned away", "error", err)
		return err
	}
	answer := &loadstats.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(r.config.Interval)}
	if err := s.Send(answer); err != nil {
		return err
	}
	p := &source{viewpoint: viewpoint.ID()}
	defer r.replace(p, nil)
	for {
		request, err := s.Recv()
		if err != nil {
			return endOf(err)
		}
		r.replace(p, p.read(request.GetClusterStats()))
	}
}

func endOf(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// read sums a proxy's report by demand and member cluster. Envoy clusters that are no class clusters are passed over:
// they are behind one, and would count twice. Envoy leaves out localities without requests, so a member cluster that was
// reported before and is not mentioned now gets zeros.
func (p *source) read(stats []*endpoint.ClusterStats) map[subject]health.Reported {
	sums := map[subject]health.Reported{}
	intervals := map[world.DemandKey]time.Duration{}
	for _, c := range stats {
		service, class, ok := xds.ParseClassCluster(c.GetClusterName())
		if !ok {
			continue
		}
		demand := world.DemandKey{Viewpoint: p.viewpoint, Service: service, Class: class}
		intervals[demand] = c.GetLoadReportInterval().AsDuration()
		for _, l := range c.GetUpstreamLocalityStats() {
			of := subject{demand, policies.ClusterName(l.GetLocality().GetZone())}
			sums[of] = add(sums[of], health.Reported{
				Succeeded: l.GetTotalSuccessfulRequests(), Failed: l.GetTotalErrorRequests(), Issued: l.GetTotalIssuedRequests(),
				InProgress: l.GetTotalRequestsInProgress(), Load: loadIn(l), Interval: intervals[demand],
			})
		}
	}
	for of := range p.newest {
		if interval, mentioned := intervals[of.demand]; mentioned {
			sums[of] = add(sums[of], health.Reported{Interval: interval})
		}
	}
	return sums
}

// add sums counts; the interval is the longer one.
func add(a, b health.Reported) health.Reported {
	a.Succeeded += b.Succeeded
	a.Failed += b.Failed
	a.Issued += b.Issued
	a.InProgress += b.InProgress
	a.Load = a.Load.Plus(b.Load)
	a.Interval = max(a.Interval, b.Interval)
	return a
}

// replace puts a proxy's report in the place of its last, and hands on the sums that it is part of. What it no longer
// reports is taken out of them; of a proxy that has gone, that is everything. The lock is held until all is handed on, so
// that of two sums of one subject the later comes later.
func (r *Reporter) replace(p *source, report map[subject]health.Reported) {
	last := p.newest
	p.newest = report
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, of := range subjectsOf(last, report) {
		r.store(p, of)
		r.config.Deliver(r.sum(of, last[of].Interval, now))
	}
}

// subjectsOf are the subjects of either report, sorted.
func subjectsOf(a, b map[subject]health.Reported) []subject {
	subjects := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.SortFunc(subjects, subject.compare)
	return slices.Compact(subjects)
}

// store notes what a proxy reports of a subject now. It is called under mu.
func (r *Reporter) store(p *source, of subject) {
	proxies := r.newest[of]
	report, reported := p.newest[of]
	switch {
	case !reported:
		if delete(proxies, p); len(proxies) == 0 {
			delete(r.newest, of)
		}
	case proxies == nil:
		r.newest[of] = map[*source]health.Reported{p: report}
	default:
		proxies[p] = report
	}
}

// sum adds up the newest reports of all proxies. interval is that of a report that has just been taken out, so that
// nothing has an interval too. It is called under mu.
func (r *Reporter) sum(of subject, interval time.Duration, now time.Time) health.Reported {
	total := health.Reported{Viewpoint: of.demand.Viewpoint, Service: of.demand.Service, Class: of.demand.Class, Cluster: of.cluster, At: now}
	for _, report := range r.newest[of] {
		total = add(total, report)
	}
	if total.Interval <= 0 {
		total.Interval = interval
	}
	return total
}
