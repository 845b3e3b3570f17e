package scrape

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/health/internal/fetch"
	"github.com/meridian-mesh/meridian/health/internal/schedule"
	"github.com/meridian-mesh/meridian/world"
)

const (
	// defaultTimeout is long for metrics, and short against the time in which loads go stale.
	defaultTimeout = time.Second
	// defaultWorkers is enough for 256 silent endpoints of one cluster scraped each second.
	defaultWorkers = 512
)

// Config configures a Scraper.
type Config struct {
	// Deliver takes what came of each scrape, one at a time. It must not block. Required.
	Deliver func(health.Signal)
	// Timeout is how long a scrape may take. Default 1s.
	Timeout time.Duration
	// Workers is how many endpoints may be scraped at a time; those of one cluster get at most half. Default 512.
	Workers int
}

// Scraper scrapes endpoints. Make one with New. Its methods but Run may be called from any goroutine.
type Scraper struct {
	// Set once.
	deliver  func(health.Signal)
	timeout  time.Duration
	schedule *schedule.Scheduler[Target, health.Scraped]
	http     *fetch.Client

	// Only by the schedule's loop to write, atomic to read.
	succeeded, failed atomic.Uint64
}

// Stats count what a Scraper did since New.
type Stats struct {
	// Targets and InFlight are of now.
	Targets, InFlight int
	// Succeeded and Failed count scrapes.
	Succeeded, Failed uint64
	// Late counts the scrapes that began more than an interval after their turn, for want of workers or of processor
	// time. While it grows, loads come late.
	Late uint64
}

// New makes a Scraper without targets.
func New(c Config) (*Scraper, error) {
	if c.Deliver == nil {
		return nil, errors.New("scrape: Config.Deliver is required")
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Workers <= 0 {
		c.Workers = defaultWorkers
	}
	s := &Scraper{deliver: c.Deliver, timeout: c.Timeout, http: fetch.New()}
	s.schedule = schedule.New(schedule.Config[Target, health.Scraped]{
		Every:   func(t Target) time.Duration { return t.Interval },
		Name:    func(t Target) string { return t.Endpoint.String() },
		Group:   func(t Target) string { return string(t.Endpoint.Pool.Cluster) },
		Do:      s.scrape,
		Deliver: s.count,
		Workers: c.Workers,
	})
	return s, nil
}

// Update sets the targets. A target that stays as it was keeps its turn; one that is gone gives no signal any more.
// The slice must not be changed afterwards.
func (s *Scraper) Update(targets []Target) { s.schedule.Update(targets) }

// Run scrapes until ctx ends, and returns nil when all that it started has ended. It may be called once.
func (s *Scraper) Run(ctx context.Context) error {
	defer s.http.Close()
	s.schedule.Run(ctx)
	return nil
}

// Stats are the counts now.
func (s *Scraper) Stats() Stats {
	c := s.schedule.Stats()
	return Stats{Targets: c.Targets, InFlight: c.InFlight, Succeeded: s.succeeded.Load(), Failed: s.failed.Load(), Late: c.Late}
}

func (s *Scraper) scrape(ctx context.Context, t Target) health.Scraped {
	var l world.Load
	request := fetch.Request{Address: t.Address, Path: t.Path, Timeout: s.timeout}
	err := s.http.Get(ctx, request, func(body io.Reader) (err error) {
		l, err = Parse(body)
		return err
	})
	return health.Scraped{
		Endpoint: t.Endpoint, Running: l.Running, Waiting: l.Waiting, KVCacheUse: l.KVCacheUse,
		Err: fetch.Cause(err, s.timeout), At: time.Now(),
	}
}

func (s *Scraper) count(scraped health.Scraped) {
	if scraped.Err == "" {
		s.succeeded.Add(1)
	} else {
		s.failed.Add(1)
	}
	s.deliver(scraped)
}
