package pipeline

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/build"
	"github.com/meridian-mesh/meridian/xds/verify"
)

// Config configures a Pipeline.
type Config struct {
	// Publish takes each snapshot that verify passed; since is when the oldest change in it came in. It must not
	// block for long: the loop waits for it. Required.
	Publish func(snapshot *xds.Snapshot, since time.Time)
	// OnMembers, where given, is told of a world in which pools may have other endpoints than before, from the loop. It must not
	// block.
	OnMembers func(*world.World)
	// OnCycle, where given, is told of every cycle, from the loop. It must not block.
	OnCycle func(Cycle)
	// Quiet is how long the loop waits for further changes while they keep coming. Default 10ms.
	Quiet time.Duration
	// MaxMerge is how long a change may be held back for merging at most. Default 20ms.
	MaxMerge time.Duration
	// FirstWait is how long the first plan waits for member clusters to say which endpoints pools have: proxies that run already
	// must not lose what they have to a control plane that knows nothing yet. Default 10s.
	FirstWait time.Duration
	// MostRetiring is how long a cluster that policies name no more is kept for requests that do not end, after it was drained. Default
	// 10m.
	MostRetiring time.Duration
	// Tick is how often the passing of time alone is judged. Default 250ms.
	Tick time.Duration
}

// Pipeline is the loop. Make one with New; its methods but Run may be called from any goroutine, before and while it
// runs.
type Pipeline struct {
	// Set once.
	config Config
	inbox  *inbox

	// Only by the loop.
	writer   world.Writer
	judged   health.Memo
	planMemo plan.Memo
	built    build.Memo
	checker  verify.Checker
	tried    map[world.ViewpointID]*xds.Snapshot // newest built, published or refused
	refusals map[world.ViewpointID]Refusal       // what proxies refused, until it is mended
	last     time.Time                           // end of the last cycle that had input
	waiting  waiting
	retiring retirement

	// Atomic.
	state atomic.Pointer[State]
}

// New makes a Pipeline with an empty world.
func New(config Config) (*Pipeline, error) {
	if config.Publish == nil {
		return nil, errors.New("pipeline: Config.Publish is required")
	}
	config.Quiet = orDefault(config.Quiet, 10*time.Millisecond)
	config.MaxMerge = max(orDefault(config.MaxMerge, 20*time.Millisecond), config.Quiet)
	config.FirstWait = orDefault(config.FirstWait, 10*time.Second)
	config.Tick = orDefault(config.Tick, 250*time.Millisecond)
	config.MostRetiring = orDefault(config.MostRetiring, 10*time.Minute)
	p := &Pipeline{config: config, retiring: retirement{most: config.MostRetiring}, inbox: newInbox(), tried: map[world.ViewpointID]*xds.Snapshot{}, refusals: map[world.ViewpointID]Refusal{}}
	p.state.Store(&State{World: p.writer.Current(), Plan: &plan.Plan{Admission: &plan.Admission{}}})
	return p, nil
}

func orDefault(d, fallback time.Duration) time.Duration {
	if d <= 0 {
		return fallback
	}
	return d
}

// State is the picture after the last cycle.
func (p *Pipeline) State() *State { return p.state.Load() }

// SetPolicies puts a policy set in force with the next cycle.
func (p *Pipeline) SetPolicies(set *policies.Set) {
	p.inbox.put(time.Now(), func(b *batch) { b.policies = set })
}

// SeeViewpoint says that a proxy with this viewpoint has connected.
func (p *Pipeline) SeeViewpoint(v world.Viewpoint) {
	p.inbox.put(time.Now(), func(b *batch) { b.addViewpoint(v) })
}

// Signal hands in a signal; the newest of one source and key counts.
func (p *Pipeline) Signal(s health.Signal) {
	p.inbox.put(time.Now(), func(b *batch) { b.addSignal(s) })
}

// Find hands in which endpoints a pool has, as its cluster says.
func (p *Pipeline) Find(f world.PoolFound) {
	p.inbox.put(time.Now(), func(b *batch) { b.addPool(f) })
}

// Count hands in what accelerators a cluster has, and what its pools hold of them.
func (p *Pipeline) Count(f world.AcceleratorsCounted) {
	p.inbox.put(time.Now(), func(b *batch) { b.addCount(f) })
}

// SeeRoundTrip hands in a measured round trip between regions.
func (p *Pipeline) SeeRoundTrip(f world.RoundTripMeasured) {
	p.inbox.put(time.Now(), func(b *batch) { b.addRoundTrip(f) })
}

// Run turns the loop until ctx ends. It returns nil then.
func (p *Pipeline) Run(ctx context.Context) error {
	tick := time.NewTicker(p.config.Tick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.inbox.wake:
			if !p.settle(ctx) {
				return nil
			}
		case <-tick.C:
		}
		p.cycle(p.inbox.take(), time.Now())
	}
}

// settle holds a change back while others keep coming, so that a stream of them is merged: not at all after a quiet
// time, and never longer than MaxMerge. It returns false when ctx ended.
func (p *Pipeline) settle(ctx context.Context) bool {
	if time.Since(p.last) >= p.config.Quiet {
		return true
	}
	latest := time.NewTimer(p.config.MaxMerge)
	defer latest.Stop()
	quiet := time.NewTimer(p.config.Quiet)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-latest.C:
			return true
		case <-quiet.C:
			return true
		case <-p.inbox.wake:
			quiet.Reset(p.config.Quiet)
		}
	}
}

// cycle works one batch in: judge, commit, and where that changed anything plan, build, verify, publish.
func (p *Pipeline) cycle(b batch, now time.Time) {
	w, delta := p.commit(b, now)
	before := p.State()
	refused := p.noteRefusals(b.refusals)
	if (delta.Policies || delta.Members) && p.config.OnMembers != nil {
		p.config.OnMembers(w)
	}
	switch p.waiting.look(w, now, p.config.FirstWait) {
	case hold:
		return
	case release:
		delta.Policies = true
	}
	if !refused && !p.due(before, delta, now) {
		if delta.Accelerators {
			p.show(w)
		}
		return
	}
	c := Cycle{Since: b.since, Delta: delta, Planned: true}
	if c.Since.IsZero() {
		c.Since = now
	}
	next := &State{World: w, Published: before.Published, Refused: before.Refused, Retiring: p.retiring.kept, Cycle: before.Cycle + 1}
	next.Plan, c.Plan = timed(func() *plan.Plan { return plan.Compute(w, &p.planMemo) })
	var snapshots []*xds.Snapshot
	snapshots, c.Build = timed(func() []*xds.Snapshot {
		made, err := build.Build(w, next.Plan, &p.built)
		next.BuildError = err
		return made
	})
	p.publish(&c, next, snapshots)
	p.writer.Commit(sharesPublished(before, next))
	c.State = next
	p.state.Store(next)
	p.last = time.Now()
	if p.config.OnCycle != nil {
		p.config.OnCycle(c)
	}
}

// commit brings the world up to date: what edges state, then what health makes of the signals.
func (p *Pipeline) commit(b batch, now time.Time) (*world.World, world.Delta) {
	b.policies = p.retiring.next(p.writer.Current(), b.policies, now)
	w, stated := p.writer.Commit(b.orderedFacts(now))
	w, judged := p.writer.Commit(health.Judge(w, b.orderedSignals(), now, &p.judged))
	return w, stated.Merge(judged)
}

// show puts a world into the picture that has the same plan as the one before.
func (p *Pipeline) show(w *world.World) {
	next := *p.State()
	next.World = w
	p.state.Store(&next)
}

// due says whether the plan has to be made anew: something but the time changed, or the plan asked for this time.
func (p *Pipeline) due(before *State, delta world.Delta, now time.Time) bool {
	if p.writer.Current().Policies() == nil {
		return false
	}
	return !delta.OnlyTime() || (!before.Plan.NextAt.IsZero() && !now.Before(before.Plan.NextAt))
}

// publish verifies what is new and hands on what passes; what does not leaves the last good snapshot in force.
func (p *Pipeline) publish(c *Cycle, next *State, snapshots []*xds.Snapshot) {
	published, refused := maps.Clone(next.Published), maps.Clone(next.Refused)
	if published == nil {
		published, refused = map[world.ViewpointID]*xds.Snapshot{}, map[world.ViewpointID][]verify.Violation{}
	}
	for _, s := range snapshots {
		if p.tried[s.Viewpoint] == s && !c.Delta.Policies {
			continue
		}
		p.tried[s.Viewpoint] = s
		if s = p.mend(s); sameContent(published[s.Viewpoint], s) {
			continue
		}
		violations, took := timed(func() []verify.Violation { return p.checker.Check(next.World, s) })
		c.Verify += took
		if len(violations) > 0 {
			refused[s.Viewpoint] = violations
			c.Refused++
			continue
		}
		delete(refused, s.Viewpoint)
		if published[s.Viewpoint] != s {
			published[s.Viewpoint] = s
			p.config.Publish(s, c.Since)
			c.Published++
		}
	}
	next.Published, next.Refused, next.Withheld = published, refused, maps.Clone(p.refusals)
}

// sharesPublished states the shares that proxies now have, for every decision that is new and in force.
func sharesPublished(before, after *State) []world.Fact {
	var facts []world.Fact
	for i, d := range after.Plan.Decisions {
		if i < len(before.Plan.Decisions) && before.Plan.Decisions[i] == d && len(before.Refused[d.Viewpoint]) == 0 {
			continue
		}
		if _, held := after.Refused[d.Viewpoint]; held || after.BuildError != nil {
			continue
		}
		key := world.DemandKey{Viewpoint: d.Viewpoint, Service: d.Service, Class: d.Class}
		facts = append(facts, world.SharesPublished{Key: key, Shares: d.Shares(), At: after.World.Now()})
	}
	return facts
}

func timed[T any](do func() T) (T, time.Duration) {
	start := time.Now()
	v := do()
	return v, time.Since(start)
}
