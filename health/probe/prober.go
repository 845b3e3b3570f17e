package probe

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/health/internal/fetch"
	"github.com/meridian-mesh/meridian/health/internal/schedule"
)

// defaultWorkers is enough for 1,000 silent endpoints probed each 500ms with a timeout of as long, twice over: a
// silent cluster gets half of them.
const defaultWorkers = 2048

// Config configures a Prober.
type Config struct {
	// Deliver takes each outcome, one at a time. It must not block. Required.
	Deliver func(health.Signal)
	// Workers is how many endpoints may be probed at a time; those of one cluster get at most half. Default 2048.
	Workers int
}

// Prober probes endpoints. Make one with New.
type Prober struct {
	// Set once.
	deliver  func(health.Signal)
	schedule *schedule.Scheduler[Target, health.Probed]
	http     *fetch.Client

	// Only by the schedule's loop to write, atomic to read.
	succeeded, failed atomic.Uint64
}

// Stats count what a Prober did since New.
type Stats struct {
	// Targets and InFlight are of now.
	Targets, InFlight int
	// Succeeded and Failed count outcomes.
	Succeeded, Failed uint64
	// Late counts the probes that began more than an interval after their turn, for want of workers or of processor
	// time. While it grows, verdicts come late.
	Late uint64
}

// New makes a Prober without targets.
func New(c Config) (*Prober, error) {
	if c.Deliver == nil {
		return nil, errors.New("probe: Config.Deliver is required")
	}
	if c.Workers <= 0 {
		c.Workers = defaultWorkers
	}
	p := &Prober{deliver: c.Deliver, http: fetch.New()}
	p.schedule = schedule.New(schedule.Config[Target, health.Probed]{
		Every:   func(t Target) time.Duration { return t.Check.Interval.Std() },
		Name:    func(t Target) string { return t.Endpoint.String() },
		Group:   func(t Target) string { return string(t.Endpoint.Pool.Cluster) },
		Do:      p.probe,
		Deliver: p.count,
		Workers: c.Workers,
	})
	return p, nil
}

// Update sets the targets. A target that stays as it was keeps its turn; one that is gone gives no signal any more.
// The slice must not be changed afterwards.
func (p *Prober) Update(targets []Target) { p.schedule.Update(targets) }

// Run probes until ctx ends, and returns nil when all that it started has ended. It may be called once.
func (p *Prober) Run(ctx context.Context) error {
	defer p.http.Close()
	p.schedule.Run(ctx)
	return nil
}

// Stats are the counts now.
func (p *Prober) Stats() Stats {
	s := p.schedule.Stats()
	return Stats{Targets: s.Targets, InFlight: s.InFlight, Succeeded: p.succeeded.Load(), Failed: p.failed.Load(), Late: s.Late}
}

func (p *Prober) probe(ctx context.Context, t Target) health.Probed {
	err := p.check(ctx, t)
	return health.Probed{Endpoint: t.Endpoint, OK: err == nil, Cause: fetch.Cause(err, t.Check.Timeout.Std()), At: time.Now()}
}

func (p *Prober) count(outcome health.Probed) {
	if outcome.OK {
		p.succeeded.Add(1)
	} else {
		p.failed.Add(1)
	}
	p.deliver(outcome)
}
