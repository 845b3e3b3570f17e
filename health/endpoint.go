package health

import (
	"fmt"
	"time"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// ServedFor is how long a report of served requests speaks for a pool of which no endpoint answers probes. If probes
// fail and proxies are served all the same, it is the way from here to there that is broken: what is Unhealthy for the
// probes is then held to be Unknown, so that requests with no better place to go still go there. Reports come about
// once a second.
const ServedFor = 3 * time.Second

// servedStep is how much newer a pool's ServedAt must be to be worth a fact.
const servedStep = 500 * time.Millisecond

// StaleAfter is how long a verdict holds without another probe's outcome: three probes that take as long as they may,
// and at least two seconds, so that a control plane that is busy for a moment doesn't forget what it knows.
func StaleAfter(h policies.HealthCheck) time.Duration {
	return max(3*h.Interval.Std()+h.Timeout.Std(), 2*time.Second)
}

// LoadStaleAfter is how long an endpoint's load holds without being read again: three intervals, and two seconds for
// scrapes that are slow.
func LoadStaleAfter(c policies.Capacity) time.Duration { return 3*c.Interval.Std() + 2*time.Second }

// check is how the endpoints of one pool are judged at one time.
type check struct {
	healthyAfter, unhealthyAfter int
	staleAfter                   time.Duration
	now                          time.Time
	doubtful                     bool // no endpoint answers probes, but proxies are served: see ServedFor
}

func checkOf(h policies.HealthCheck, now time.Time) check {
	return check{
		healthyAfter: max(1, h.HealthyThreshold), unhealthyAfter: max(1, h.UnhealthyThreshold),
		staleAfter: StaleAfter(h), now: now,
	}
}

// stale says whether something is held that is too old to be.
func (c *check) stale(h *world.Health) bool { return expired(c.expiry(h), c.now) }

// expiry is until when what is held holds; zero where nothing is.
func (c *check) expiry(h *world.Health) time.Time {
	if h.Verdict == world.Unknown && h.Streak == 0 {
		return time.Time{}
	}
	return h.At.Add(c.staleAfter)
}

// expired says whether a time at which something stops to hold is over; zero never is.
func expired(until, now time.Time) bool { return !until.IsZero() && now.After(until) }

// judge works the outcomes in, oldest first, and then the time.
func (c *check) judge(h world.Health, outcomes []Probed) world.Health {
	for _, o := range outcomes {
		h = c.step(h, o)
	}
	if c.stale(&h) {
		h = turn(h, world.Unknown, c.now)
		h.Streak = 0
		h.Cause = fmt.Sprintf("not probed for %v", c.staleAfter)
	}
	return h
}

// step works one outcome in. The first success of all makes an endpoint healthy at once, so that a start is quick;
// after that every change of verdict takes its threshold of equal outcomes in a row.
func (c *check) step(h world.Health, o Probed) world.Health {
	if !o.At.After(h.At) {
		return h
	}
	first := h.At.IsZero()
	h.At = o.At
	if o.OK {
		h.Streak = max(0, h.Streak) + 1
		if first || h.Streak >= c.healthyAfter {
			h = turn(h, world.Healthy, o.At)
		}
		if h.Verdict == world.Healthy {
			h.Cause = ""
		}
		return h
	}
	h.Streak = min(0, h.Streak) - 1
	h.Cause = o.Cause
	switch {
	case -h.Streak < c.unhealthyAfter:
		return h
	case c.doubtful:
		return turn(h, world.Unknown, o.At)
	}
	return turn(h, world.Unhealthy, o.At)
}

// turn sets the verdict, and since when it holds if it is another one.
func turn(h world.Health, v world.Verdict, at time.Time) world.Health {
	if h.Verdict != v {
		h.Verdict, h.Since = v, at
	}
	return h
}

// gauge is how the loads of one pool's endpoints are taken at one time.
type gauge struct {
	used       bool // scrapes say how loaded the endpoints are
	staleAfter time.Duration
	now        time.Time
}

func gaugeOf(c policies.Capacity, now time.Time) gauge {
	return gauge{used: c.Source == policies.CapacityVLLM, staleAfter: LoadStaleAfter(c), now: now}
}

// stale says whether the load is used, and too old to be.
func (g *gauge) stale(l *world.Load) bool { return expired(g.expiry(l), g.now) }

// expiry is until when the load holds; zero where it is not used, or not known.
func (g *gauge) expiry(l *world.Load) time.Time {
	if !g.used || l.Stale || l.At.IsZero() {
		return time.Time{}
	}
	return l.At.Add(g.staleAfter)
}

// measure works scrapes in, oldest first, and then the time. A scrape that failed leaves the numbers as they are: they
// go stale by themselves.
func (g *gauge) measure(l world.Load, scrapes []Scraped) world.Load {
	for _, s := range scrapes {
		switch {
		case !g.used || !s.At.After(l.At):
		case s.Err != "":
			l.Cause = s.Err
		default:
			l = world.Load{Running: s.Running, Waiting: s.Waiting, KVCacheUse: s.KVCacheUse, At: s.At}
		}
	}
	l.Stale = l.Stale || g.stale(&l)
	return l
}

func anyHealthy(p *world.Pool) bool {
	for i := range p.Endpoints {
		if p.VerdictOf(&p.Endpoints[i]) == world.Healthy {
			return true
		}
	}
	return false
}

// servedAt is when proxies last reported that the pool served requests, by what the world knows and by the reports.
func servedAt(p *world.Pool, reports []Reported) time.Time {
	served := p.ServedAt
	for _, r := range reports {
		if r.Cluster == p.Key.Cluster && r.Succeeded > 0 && r.At.After(served) {
			served = r.At
		}
	}
	return served
}

// saidIn is what a pool's servers said of themselves in some reports; it has no time where they said nothing.
func saidIn(p *world.Pool, reports []Reported) (load world.PoolLoad) {
	for _, r := range reports {
		if r.Cluster != p.Key.Cluster || r.Load == (world.ServerLoad{}) {
			continue
		}
		load.ServerLoad = load.Plus(r.Load)
		if r.At.After(load.At) {
			load.At = r.At
		}
	}
	return load
}
