package health

import (
	"cmp"
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Judge gives the facts that follow from signals and from the time that has passed: EndpointJudged, EndpointMeasured,
// PoolServed, PoolSaid and DemandSeen, each only where something is not as the world has it, in an order that depends on
// nothing but their subjects. It does not change the world or the signals. It costs the sorting of the signals, and a look at
// every endpoint of the pools that they are about, that were replaced, or in which something has grown stale; without a memo, which
// may be nil, at every endpoint.
func Judge(w *world.World, signals []Signal, now time.Time, memo *Memo) []world.Fact {
	set := w.Policies()
	if set == nil {
		return nil
	}
	j := judging{now: now, rests: memo.of(w)}
	j.sort(signals)
	for i := range set.Services {
		j.service(w, &set.Services[i])
	}
	return j.facts
}

// judging is one run of Judge. It walks services, pools and endpoints in order, and the sorted signals beside them.
type judging struct {
	now     time.Time
	probes  []Probed
	scrapes []Scraped
	reports []Reported
	facts   []world.Fact
	// rests are those of the pools that are still to come.
	rests []rest
}

// sort splits the signals by kind and puts each kind in order.
func (j *judging) sort(signals []Signal) {
	for _, s := range signals {
		switch s := s.(type) {
		case Probed:
			s.At = j.past(s.At)
			j.probes = append(j.probes, s)
		case Scraped:
			s.At = j.past(s.At)
			j.scrapes = append(j.scrapes, s)
		case Reported:
			s.At = j.past(s.At)
			j.reports = append(j.reports, s)
		}
	}
	slices.SortFunc(j.probes, compareProbed)
	slices.SortFunc(j.scrapes, compareScraped)
	slices.SortFunc(j.reports, compareReported)
}

// past bounds a time by now: a clock that is ahead must not keep a verdict fresh.
func (j *judging) past(at time.Time) time.Time {
	if at.After(j.now) {
		return j.now
	}
	return at
}

func (j *judging) service(w *world.World, s *policies.Service) {
	name := s.Metadata.Name
	reports := take(&j.reports, func(r Reported) int { return cmp.Compare(r.Service, name) })
	pools := w.PoolsOf(name)
	for i, p := range pools {
		served := servedAt(p, reports)
		if served.Sub(p.ServedAt) >= servedStep {
			j.facts = append(j.facts, world.PoolServed{Pool: p.Key, At: served})
		}
		if load := saidIn(p, reports); !load.At.IsZero() {
			j.facts = append(j.facts, world.PoolSaid{Pool: p.Key, Load: load})
		}
		j.pool(p, s, served, &j.rests[i])
	}
	j.rests = j.rests[len(pools):]
	j.demand(w, name, reports)
}

func (j *judging) pool(p *world.Pool, s *policies.Service, served time.Time, r *rest) {
	probes := take(&j.probes, func(s Probed) int { return s.Endpoint.Pool.Compare(p.Key) })
	scrapes := take(&j.scrapes, func(s Scraped) int { return s.Endpoint.Pool.Compare(p.Key) })
	if len(probes)+len(scrapes) == 0 && r.holds(p, s, j.now) {
		return
	}
	*r = rest{pool: p, service: s}
	c := checkOf(s.Spec.Health, j.now)
	c.doubtful = len(probes) > 0 && j.now.Sub(served) <= ServedFor && !anyHealthy(p)
	g := gaugeOf(s.Spec.Capacity, j.now)
	for i := range p.Endpoints {
		e := &p.Endpoints[i]
		outcomes := take(&probes, func(s Probed) int { return s.Endpoint.Address.Compare(e.Address) })
		if len(outcomes) > 0 || c.stale(&e.Health) {
			j.judged(p.Key, e, c.judge(e.Health, outcomes))
		}
		read := take(&scrapes, func(s Scraped) int { return s.Endpoint.Address.Compare(e.Address) })
		if len(read) > 0 || g.stale(&e.Load) {
			j.measured(p.Key, e, g.measure(e.Load, read))
		}
		r.until(c.expiry(&e.Health), g.expiry(&e.Load))
	}
}

func (j *judging) judged(pool world.PoolKey, e *world.Endpoint, h world.Health) {
	if h != e.Health {
		j.facts = append(j.facts, world.EndpointJudged{Endpoint: world.EndpointKey{Pool: pool, Address: e.Address}, Health: h})
	}
}

func (j *judging) measured(pool world.PoolKey, e *world.Endpoint, l world.Load) {
	if l != e.Load {
		j.facts = append(j.facts, world.EndpointMeasured{Endpoint: world.EndpointKey{Pool: pool, Address: e.Address}, Load: l})
	}
}

// take cuts from the front of sorted all up to what order calls equal (0), drops what comes before (negative), and
// gives back the equal ones.
func take[S any](sorted *[]S, order func(S) int) []S {
	all, from := *sorted, 0
	for from < len(all) && order(all[from]) < 0 {
		from++
	}
	to := from
	for to < len(all) && order(all[to]) == 0 {
		to++
	}
	*sorted = all[to:]
	return all[from:to]
}
