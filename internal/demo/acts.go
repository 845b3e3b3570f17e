package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/load"
	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
)

const (
	// pace is how many requests a second are sent while a cluster fails and recovers.
	pace = 100
	// silentPace is less: what hangs for a second is all retried at once, and must fit.
	silentPace = 40
)

// takenOver says that within the last half second all answers, and enough of them, were given by one cluster.
func takenOver(cluster string) func([]load.Result) bool {
	return func(results []load.Result) bool {
		recent := lately(results, 500*time.Millisecond)
		return len(recent) >= 15 && by(recent)[cluster] == len(recent)
	}
}

// never watches to the end.
func never([]load.Result) bool { return false }

// linger watches for a while longer, so that what has come to hold is seen to go on.
func (d *demo) linger(ctx context.Context, t *traffic) { d.watch(ctx, t, 2*time.Second, never) }

// after are the results of requests that were due later than a time.
func after(results []load.Result, since time.Duration) []load.Result {
	var later []load.Result
	for _, r := range results {
		if r.Due >= since {
			later = append(later, r)
		}
	}
	return later
}

// nearest: each gateway's clients are served where they are.
func (d *demo) nearest(ctx context.Context) (Check, error) {
	c := Check{Name: "the nearest cluster serves", Passed: true, By: map[string]int{}}
	for _, m := range d.mesh.Members() {
		t := d.send(ctx, m.Name, american, 50)
		d.watch(ctx, t, 1500*time.Millisecond, never)
		results := t.end()
		own := by(results)[m.Name]
		c.By[m.Name] = own
		c.Sent += len(results)
		c.Failed += failed(results)
		c.Passed = c.Passed && own == len(results) && own > 0
	}
	c.Detail = fmt.Sprintf("%d requests at four gateways, each by its own cluster: %s", c.Sent, counts(c.By))
	return c, nil
}

// spill: more callers than the nearest cluster has room for.
func (d *demo) spill(ctx context.Context) (Check, error) {
	const callers = servers * slots * 3 / 2
	t := d.call(ctx, "fra-1", american, callers)
	d.watch(ctx, t, 8*time.Second, never)
	results := t.end()
	c := Check{Name: "full, and the rest spills to the next nearest", Sent: len(results), Failed: failed(results), By: by(results)}
	c.Passed = c.Failed == 0 && c.By["fra-1"] > c.Sent/3 && c.By["dub-1"] > c.Sent/20 && c.By["iad-1"]+c.By["pdx-1"] < c.Sent/20
	c.Detail = fmt.Sprintf("%d callers at a cluster with %d slots: %s, %d failed", callers, servers*slots, counts(c.By), c.Failed)
	return c, nil
}

// kill: a cluster dies under load.
func (d *demo) kill(ctx context.Context) (Check, error) {
	t := d.send(ctx, "iad-1", german, pace)
	before := d.watch(ctx, t, 15*time.Second, takenOver("dub-1"))
	d.linger(ctx, t)
	d.say("  dub-1 is killed: its gateway and its model servers")
	if err := d.mesh.Member("dub-1").Kill(); err != nil {
		return Check{}, err
	}
	moved := d.watch(ctx, t, 15*time.Second, takenOver("fra-1"))
	d.linger(ctx, t)
	results := t.end()
	c := Check{Name: "a cluster is killed, no caller notices", Sent: len(results), Failed: failed(results), By: by(results)}
	c.Passed = before && moved && c.Failed == 0
	c.Detail = fmt.Sprintf("%d requests a second of Germans: %s, %d failed", pace, counts(c.By), c.Failed)
	return c, nil
}

// recover: the cluster comes back, and its traffic with it, once and for good.
func (d *demo) recover(ctx context.Context) (Check, error) {
	t := d.send(ctx, "iad-1", german, pace)
	d.watch(ctx, t, 10*time.Second, takenOver("fra-1"))
	d.say("  dub-1 is started again")
	if err := d.mesh.Member("dub-1").Revive(ctx); err != nil {
		return Check{}, err
	}
	back := d.watch(ctx, t, 20*time.Second, takenOver("dub-1"))
	settled := d.since(t)
	d.linger(ctx, t)
	d.linger(ctx, t)
	results := t.end()
	later := after(results, settled)
	c := Check{Name: "it comes back without oscillation", Sent: len(results), Failed: failed(results), By: by(results)}
	strays := len(later) - by(later)["dub-1"]
	c.Passed = back && c.Failed == 0 && strays == 0 && len(later) > 0
	c.Detail = fmt.Sprintf("%s, %d failed; of %d after it was back, %d went elsewhere", counts(c.By), c.Failed, len(later), strays)
	return c, nil
}

// since is when the last result ended.
func (d *demo) since(t *traffic) time.Duration {
	var last time.Duration
	for _, r := range t.soFar() {
		last = max(last, r.Done())
	}
	return last
}

// silence: a region accepts connections and answers nothing.
func (d *demo) silence(ctx context.Context) (Check, error) {
	t := d.send(ctx, "iad-1", german, silentPace)
	before := d.watch(ctx, t, 15*time.Second, takenOver("dub-1"))
	d.linger(ctx, t)
	d.say("  dublin goes silent: everything there is frozen")
	began := time.Now()
	if err := d.mesh.Member("dub-1").Silence(); err != nil {
		return Check{}, err
	}
	moved := d.watch(ctx, t, 15*time.Second, takenOver("fra-1"))
	took := time.Since(began)
	d.linger(ctx, t)
	results := t.end()
	if err := d.mesh.Member("dub-1").Speak(); err != nil {
		return Check{}, err
	}
	longest := time.Duration(0)
	for _, r := range results {
		longest = max(longest, r.Whole)
	}
	c := Check{Name: "a region goes silent, and is left", Sent: len(results), Failed: failed(results), By: by(results)}
	c.Passed = before && moved && c.Failed == 0
	c.Detail = fmt.Sprintf("%s, %d failed; all with fra-1 %.1f s later, the longest wait was %.1f s", counts(c.By), c.Failed, took.Seconds(), longest.Seconds())
	return c, nil
}

// refuse: the EU is down, and Germans are refused rather than served abroad.
func (d *demo) refuse(ctx context.Context) (Check, error) {
	abroad := func() int64 { return d.mesh.Member("iad-1").Bytes() + d.mesh.Member("pdx-1").Bytes() }
	eu := []*mesh.Member{d.mesh.Member("fra-1"), d.mesh.Member("dub-1")}
	d.say("  every model server in the EU is killed")
	for _, m := range eu {
		if err := m.KillServers(); err != nil {
			return Check{}, err
		}
	}
	before := abroad()
	t := d.send(ctx, "iad-1", german, 50)
	d.watch(ctx, t, 3*time.Second, never)
	results := t.end()
	left := abroad() - before
	refused := 0
	for _, r := range results {
		if r.Status == 503 {
			refused++
		}
	}
	for _, m := range eu {
		if err := m.ReviveServers(); err != nil {
			return Check{}, err
		}
	}
	c := Check{Name: "EU data with the EU down is refused", Sent: len(results), By: map[string]int{"refused": refused}}
	c.Failed = len(results) - refused
	c.Passed = refused == len(results) && refused > 0 && left == 0
	c.Detail = fmt.Sprintf("%d of %d refused with residency_unsatisfiable, %d bytes left the EU", refused, c.Sent, left)
	return c, nil
}

// again: the EU is up, and Germans are served in it.
func (d *demo) again(ctx context.Context) (Check, error) {
	t := d.send(ctx, "iad-1", german, 50)
	back := d.watch(ctx, t, 20*time.Second, func(results []load.Result) bool {
		recent := lately(results, 500*time.Millisecond)
		served := by(recent)
		return len(recent) >= 10 && served["fra-1"]+served["dub-1"] == len(recent)
	})
	results := t.end()
	c := Check{Name: "the EU comes back, and serves its people", Passed: back, Sent: len(results), Failed: failed(results), By: by(results)}
	c.Passed = back && c.By["iad-1"]+c.By["pdx-1"] == 0
	c.Detail = fmt.Sprintf("%s; %d were still refused at first, none was served abroad", counts(c.By), c.Failed)
	return c, nil
}
