package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/meridian-mesh/meridian/geo/mmdb"
	"github.com/meridian-mesh/meridian/health/probe"
	"github.com/meridian-mesh/meridian/health/scrape"
	"github.com/meridian-mesh/meridian/internal/pipeline"
	"github.com/meridian-mesh/meridian/kube"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/policies/folder"
	"github.com/meridian-mesh/meridian/xds/cache"
	"github.com/meridian-mesh/meridian/xds/identity"
	"github.com/meridian-mesh/meridian/xds/locate"
	"github.com/meridian-mesh/meridian/xds/report"
	"github.com/meridian-mesh/meridian/xds/serve"
)

// Config configures a Plane.
type Config struct {
	// Policies is the folder of policy files. Required.
	Policies string
	// XDS is where proxies connect: ADS, load reports and the geo service. Default 127.0.0.1:18000. Plaintext is only
	// served on loopback, unless AllowPlaintext is set.
	XDS string
	// HTTP is where metrics, health, readiness and status are. Default 127.0.0.1:18001.
	HTTP string
	// AllowPlaintext permits an XDS address that is not loopback without TLS.
	AllowPlaintext bool
	// TLS is how the XDS address is served. Proxies must then prove who they are. Nil: plaintext.
	TLS *identity.TLS
	// TokenReviews are kubeconfigs of API servers, by the cluster whose proxies may prove who they are by tokens of service
	// accounts. Only with TLS.
	TokenReviews map[policies.ClusterName]string
	// GeoDatabase is the MMDB of the geo service; empty: the embedded demo database, loudly.
	GeoDatabase string
	// Demo says that the demo database is meant.
	Demo bool
	// Kubeconfig reaches the cluster in which the control plane runs, for Secrets in which kubeconfigs of member clusters are. Empty:
	// by the pod's service account, where it is a pod.
	Kubeconfig string
	// StateDir is the folder in which what is published is kept, for this replica alone; after a restart it is served until
	// there is something newer. Empty: nothing is kept.
	StateDir string
	// ReportInterval is how often proxies report load. Default 1s.
	ReportInterval time.Duration
	// Quiet and MaxMerge are how changes are merged, as in pipeline.Config.
	Quiet, MaxMerge time.Duration
	// MostRetiring is how long removed clusters are kept for requests that do not end, as in pipeline.Config.
	MostRetiring time.Duration
	// Serving is how proxies are served: canaries, patience, limits. What it is wired to is filled in.
	Serving serve.Config
	// Log defaults to slog's default.
	Log *slog.Logger
}

// Plane is one replica of the control plane.
type Plane struct {
	// Set once.
	config   Config
	log      *slog.Logger
	xds      *net.TCPListener
	http     *net.TCPListener
	pipeline *pipeline.Pipeline
	folder   *folder.Folder
	kube     *kube.Watcher
	prober   *probe.Prober
	scraper  *scrape.Scraper
	geo      *mmdb.Database
	cache    *cache.Cache
	serve    *serve.Server
	grpc     *grpc.Server
	metrics  *metrics
	peers    peers
	store    *cache.Store // nil: nothing is kept
	restored restored
	started  time.Time

	// Only by the pipeline's loop.
	reading *policies.Set // whose clusters are read

	// Atomic.
	draining atomic.Bool
}

// New makes a Plane and opens its listeners. The caller must Run it, or Close it.
func New(config Config) (*Plane, error) {
	if config.Policies == "" {
		return nil, errors.New("control plane: Config.Policies is required")
	}
	if config.XDS == "" {
		config.XDS = "127.0.0.1:18000"
	}
	if config.HTTP == "" {
		config.HTTP = "127.0.0.1:18001"
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	p := &Plane{config: config, log: config.Log, cache: &cache.Cache{}, started: time.Now()}
	if err := p.listen(); err != nil {
		return nil, err
	}
	if err := p.assemble(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// listen opens both listeners.
func (p *Plane) listen() error {
	var err error
	if p.xds, err = listen(p.config.XDS, p.config.AllowPlaintext || p.config.TLS != nil); err != nil {
		return fmt.Errorf("xDS address: %w", err)
	}
	if p.http, err = listen(p.config.HTTP, true); err != nil {
		return errors.Join(fmt.Errorf("HTTP address: %w", err), p.xds.Close())
	}
	return nil
}

func listen(address string, anywhere bool) (*net.TCPListener, error) {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("%q is not an IP address and a port: %w", address, err)
	}
	if !a.Addr().IsLoopback() && !anywhere {
		return nil, fmt.Errorf("%s is not a loopback address, and xDS is plaintext: give a certificate, a key and client CAs, bind to loopback, or allow it explicitly", a)
	}
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(a))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", a, err)
	}
	return l, nil
}

// assemble makes the parts and joins them.
func (p *Plane) assemble() error {
	p.metrics = newMetrics(p)
	var err error
	if p.pipeline, err = pipeline.New(pipeline.Config{Publish: p.publish, OnCycle: p.cycled, OnMembers: p.membersChanged, Quiet: p.config.Quiet, MaxMerge: p.config.MaxMerge, MostRetiring: p.config.MostRetiring}); err != nil {
		return err
	}
	if p.folder, err = folder.New(folder.Config{Dir: p.config.Policies, OnSet: p.setPolicies, OnError: p.policiesFailed}); err != nil {
		return err
	}
	if p.kube, err = p.newKube(); err != nil {
		return err
	}
	if p.prober, err = probe.New(probe.Config{Deliver: p.pipeline.Signal}); err != nil {
		return err
	}
	if p.scraper, err = scrape.New(scrape.Config{Deliver: p.pipeline.Signal}); err != nil {
		return err
	}
	if p.geo, err = mmdb.New(mmdb.Config{Path: p.config.GeoDatabase, OnReload: p.geoReloaded}); err != nil {
		return err
	}
	p.restore()
	if p.peers, err = p.newPeers(); err != nil {
		return err
	}
	p.metrics.registry.MustRegister(p.peers)
	return p.services()
}

// services makes the gRPC services.
func (p *Plane) services() error {
	var err error
	serving := p.config.Serving
	serving.Cache, serving.RegionOf, serving.Authenticate, serving.Log = p.cache, p.regionOf, p.peers.authenticate(), p.log
	serving.OnViewpoint, serving.OnQuarantine = p.pipeline.SeeViewpoint, p.quarantined
	serving.OnPush, serving.OnAnswer, serving.OnRejected = p.metrics.pushed, p.metrics.answered, p.metrics.turnedAway
	if p.serve, err = serve.New(serving); err != nil {
		return err
	}
	reporter, err := report.New(report.Config{Deliver: p.pipeline.Signal, Interval: p.config.ReportInterval, Log: p.log, Viewpoint: p.serve.Viewpoint, Authenticate: p.peers.authenticate()})
	if err != nil {
		return err
	}
	locator, err := locate.New(locate.Config{Lookup: p.geo.Lookup, Log: p.log})
	if err != nil {
		return err
	}
	p.grpc = grpc.NewServer(append(p.serve.Options(), p.peers.options()...)...)
	p.serve.Register(p.grpc)
	reporter.Register(p.grpc)
	locator.Register(p.grpc)
	return nil
}

// Close closes the listeners of a Plane that is not run.
func (p *Plane) Close() error {
	err := errors.Join(p.xds.Close(), p.http.Close())
	if p.store != nil {
		err = errors.Join(err, p.store.Close())
	}
	return err
}

// XDS is where proxies connect.
func (p *Plane) XDS() netip.AddrPort { return p.xds.Addr().(*net.TCPAddr).AddrPort() }

// HTTP is where metrics, health, readiness and status are.
func (p *Plane) HTTP() netip.AddrPort { return p.http.Addr().(*net.TCPAddr).AddrPort() }

// State is the picture after the pipeline's last cycle.
func (p *Plane) State() *pipeline.State { return p.pipeline.State() }

// Proxies are those that are connected.
func (p *Plane) Proxies() []serve.ProxyStatus { return p.serve.Status() }

// drainGrace is how long streams and requests in flight may take to end when the plane stops.
const drainGrace = 5 * time.Second

// Run serves until ctx ends, then drains: readiness goes first, streams are told to go elsewhere, and what does not end in
// time is cut off.
func (p *Plane) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	web := &http.Server{Handler: p.handler(), ReadHeaderTimeout: 5 * time.Second, Protocols: bothProtocols()}
	for _, run := range []func(context.Context) error{p.runPipeline, p.serve.Run, p.peers.run, p.folder.Run, p.kube.Run, p.prober.Run, p.scraper.Run, p.geo.Run} {
		g.Go(func() error { return run(ctx) })
	}
	g.Go(func() error { return p.grpc.Serve(p.serve.Listener(p.xds)) })
	g.Go(func() error {
		if err := web.Serve(p.http); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		return p.shutDown(web)
	})
	p.log.Info("serving", "xds", p.XDS().String(), "http", p.HTTP().String(), "policies", p.config.Policies)
	return g.Wait()
}

// shutDown ends what serves.
func (p *Plane) shutDown(web *http.Server) error {
	p.draining.Store(true)
	p.serve.Drain()
	ended := make(chan struct{})
	go func() { p.grpc.GracefulStop(); close(ended) }()
	late := time.NewTimer(drainGrace)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		p.grpc.Stop()
		<-ended
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainGrace)
	defer cancel()
	return web.Shutdown(ctx)
}

// regionOf is where a cluster is.
func (p *Plane) regionOf(c policies.ClusterName) (policies.RegionName, bool) {
	cluster, ok := p.clusterOf(c)
	if !ok {
		return "", false
	}
	return cluster.Spec.Region, true
}
