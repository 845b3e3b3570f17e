package plan_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// The closed loop: what the planner decides changes what is measured, and what is measured comes late. Requests are a
// fluid: they arrive at a rate for each key, go where its shares say, and each pool ends at most its slots in the time
// that a request takes. So a pool that gets more fills a queue, and what is in flight grows.
const (
	// tick is how often the loop may plan, beat the step of the fluid, and report the time between measurements.
	tick   = 250 * time.Millisecond
	beat   = 50 * time.Millisecond
	report = time.Second
	// demandLag is how late requests in flight are known, gaugeLag how late what servers run is.
	demandLag = 2 * time.Second
	gaugeLag  = 5 * time.Second
)

// loop is the state of a closed loop.
type loop struct {
	*simulation
	service policies.ServiceName
	// takes is how long a request takes.
	takes time.Duration
	// rates are requests per second.
	rates map[world.DemandKey]float64
	keys  []world.DemandKey // of rates, sorted by viewpoint as decisions are
	// inFlight are requests, by key and cluster; past are those of every beat.
	inFlight map[part]float64
	past     []map[part]float64
	smoothed map[part]float64

	// moved is how many points of share have moved in all; peak is the largest use of a pool's slots.
	moved, peak float64
	// rises says which shares rose when they last changed, turns how often each did the opposite of the time before.
	rises map[part]bool
	turns map[part]int
}

// part is a key's requests at one cluster.
type part struct {
	key     world.DemandKey
	cluster policies.ClusterName
}

// run goes on with a loop for a time, and prints the shares of every second. The words after the duration are the
// service, how long a request takes, and for each key CLUSTER/CLASS=RATE in requests a second.
func (s *story) run(d time.Duration, word []string) {
	l := s.loop(policies.ServiceName(word[0]), s.duration(word[1]))
	for _, w := range word[2:] {
		name, rate, _ := strings.Cut(w, "=")
		cluster, class, _ := strings.Cut(name, "/")
		l.setRate(world.DemandKey{Viewpoint: s.viewpointOf(cluster), Service: l.service, Class: world.ClassID(class)}, s.number(rate))
	}
	before := l.sharesNow()
	l.moved, l.peak = 0, 0
	for range d / report {
		l.second()
		fmt.Fprintf(&s.out, "%4s", s.world.Now().Sub(start))
		for _, key := range l.keys {
			fmt.Fprintf(&s.out, "  %s", sharesText(l.sharesOf(key)))
		}
		s.out.WriteByte('\n')
	}
	fmt.Fprintf(&s.out, "moved %.0f points in all, %.0f net; fullest pool at %.0f%%\n", l.moved, pointsBetween(before, l.sharesNow()), 100*l.peak)
}

// loop gives the loop of the story's last run, so that runs follow each other.
func (s *story) loop(service policies.ServiceName, takes time.Duration) *loop {
	if s.last == nil || s.last.service != service {
		s.last = &loop{simulation: s.simulation, service: service, rates: map[world.DemandKey]float64{}, inFlight: map[part]float64{}, smoothed: map[part]float64{}, rises: map[part]bool{}, turns: map[part]int{}}
		s.last.plan = s.compute()
		s.publish()
	}
	s.last.takes = takes
	return s.last
}

func (l *loop) setRate(key world.DemandKey, rate float64) {
	if _, known := l.rates[key]; !known {
		l.keys = append(l.keys, key)
	}
	l.rates[key] = rate
}

// second runs one second of the loop.
func (l *loop) second() {
	for now := time.Duration(0); now < report; now += beat {
		if now%tick == 0 {
			before := l.sharesNow()
			l.plan = plan.Compute(l.world, &l.memo)
			l.publish()
			l.note(before, l.sharesNow())
		}
		l.flow(beat)
		l.advance(beat)
	}
	l.measure()
}

// note counts what moved.
func (l *loop) note(before, after map[part]float64) {
	l.moved += pointsBetween(before, after)
	for _, key := range l.keys {
		for _, p := range l.world.PoolsOf(l.service) {
			at := part{key, p.Key.Cluster}
			rises, moves := after[at] > before[at], after[at] != before[at]
			if last, known := l.rises[at]; moves && known && last != rises {
				l.turns[at]++
			}
			if moves {
				l.rises[at] = rises
			}
		}
	}
}

// flow moves the fluid on.
func (l *loop) flow(d time.Duration) {
	for _, p := range l.world.PoolsOf(l.service) {
		var all float64
		for _, key := range l.keys {
			all += l.inFlight[part{key, p.Key.Cluster}]
		}
		slots := float64(l.slots(p))
		if slots > 0 {
			l.peak = max(l.peak, all/slots)
		}
		ended := 0.0
		if all > 0 {
			ended = min(1, min(all, slots)/all*d.Seconds()/l.takes.Seconds())
		}
		for _, key := range l.keys {
			at := part{key, p.Key.Cluster}
			share := 0.0
			for _, s := range l.sharesOf(key) {
				if s.Cluster == p.Key.Cluster {
					share = float64(s.Parts) / world.ShareTotal
				}
			}
			l.inFlight[at] += l.rates[key]*share*d.Seconds() - l.inFlight[at]*ended
		}
	}
	seen := make(map[part]float64, len(l.inFlight))
	for at, n := range l.inFlight {
		seen[at] = n
	}
	l.past = append(l.past, seen)
}

func (l *loop) slots(p *world.Pool) int {
	service, _ := l.world.Policies().Service(l.service)
	return p.Headroom(service.Spec.Capacity).Slots
}

// measure reports what was in flight demandLag ago, smoothed, and what servers ran gaugeLag ago.
func (l *loop) measure() {
	late := func(d time.Duration) map[part]float64 { return l.past[max(0, len(l.past)-1-int(d/beat))] }
	for _, p := range l.world.PoolsOf(l.service) {
		var runs float64 // or waits
		for _, key := range l.keys {
			at := part{key, p.Key.Cluster}
			l.smoothed[at] = (l.smoothed[at] + late(demandLag)[at]) / 2
			l.commit(world.DemandSeen{Key: key, Cluster: at.cluster, Demand: world.Demand{InFlight: l.smoothed[at], At: l.world.Now()}})
			runs += late(gaugeLag)[at]
		}
		running := min(int(runs), l.slots(p))
		l.load(l.service, p.Key.Cluster, running, int(runs)-running)
	}
}

func (l *loop) sharesOf(key world.DemandKey) []world.Share {
	d, ok := l.plan.Find(key.Viewpoint, key.Service, key.Class)
	if !ok {
		l.t.Fatalf("no decision for %v", key)
	}
	return d.Shares()
}

// sharesNow are the shares of every key of the loop.
func (l *loop) sharesNow() map[part]float64 {
	shares := map[part]float64{}
	for _, key := range l.keys {
		for _, s := range l.sharesOf(key) {
			shares[part{key, s.Cluster}] = float64(s.Parts)
		}
	}
	return shares
}

// pointsBetween is how many points of share, in percent, lie between shares.
func pointsBetween(a, b map[part]float64) float64 {
	var all float64
	for at, n := range a {
		all += max(0, n-b[at])
	}
	return all * 100 / world.ShareTotal
}

func sharesText(shares []world.Share) string {
	words := make([]string, len(shares))
	for i, s := range shares {
		words[i] = fmt.Sprintf("%s=%g%%", s.Cluster, float64(s.Parts)/100)
	}
	return strings.Join(words, " ")
}
