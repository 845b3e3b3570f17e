package demo

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/load"
	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
)

// traffic is requests that are under way.
type traffic struct {
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	results []load.Result // under mu
	err     error         // under mu
}

// send begins to send from clients in a country to a gateway at a rate.
func (d *demo) send(ctx context.Context, at, client string, rate float64) *traffic {
	return d.begin(ctx, at, client, load.Config{Rate: rate})
}

// call begins to send from so many callers that each wait for their answer, which is long.
func (d *demo) call(ctx context.Context, at, client string, callers int) *traffic {
	return d.begin(ctx, at, client, load.Config{Concurrency: callers, MaxTokens: 64})
}

func (d *demo) begin(ctx context.Context, at, client string, config load.Config) *traffic {
	ctx, stop := context.WithCancel(ctx)
	t := &traffic{stop: stop, done: make(chan struct{})}
	config.Targets = []string{"http://" + d.mesh.Member(at).HTTP.String()}
	config.Header = http.Header{"X-Forwarded-For": {client}}
	config.Model, config.Prompt = mesh.Model, "Say something."
	config.Duration, config.Timeout = time.Minute, 20*time.Second
	config.Observe = t.observe
	go func() {
		defer close(t.done)
		_, err := load.Run(ctx, config)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.err = err
	}()
	return t
}

func (t *traffic) observe(r load.Result) {
	if r.Kind == load.Interrupted {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.results = append(t.results, r)
}

// soFar are the results until now.
func (t *traffic) soFar() []load.Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.results)
}

// end stops sending and gives all results.
func (t *traffic) end() []load.Result {
	t.stop()
	<-t.done
	return t.soFar()
}

// failed are the results that a caller would notice.
func failed(results []load.Result) int {
	n := 0
	for _, r := range results {
		if !r.OK() {
			n++
		}
	}
	return n
}

// by counts successes by cluster.
func by(results []load.Result) map[string]int {
	counts := map[string]int{}
	for _, r := range results {
		if r.OK() {
			counts[r.Answerer.Cluster]++
		}
	}
	return counts
}

// counts writes counts by name.
func counts(m map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, m[name]))
	}
	return strings.Join(parts, ", ")
}

// lately are the results that ended within a time before the last one.
func lately(results []load.Result, within time.Duration) []load.Result {
	var last time.Duration
	for _, r := range results {
		last = max(last, r.Done())
	}
	return slices.DeleteFunc(slices.Clone(results), func(r load.Result) bool { return r.Done() < last-within })
}

// watch shows once a second who answers, until something holds or time is up. It says whether it came to hold.
func (d *demo) watch(ctx context.Context, t *traffic, atMost time.Duration, holds func([]load.Result) bool) bool {
	deadline := time.After(atMost)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return false
		case <-deadline:
			return holds(t.soFar())
		case <-tick.C:
			if n%10 == 0 {
				second := lately(t.soFar(), time.Second)
				d.say("    %3d/s  %s", len(second), counts(by(second)))
			}
			if n%3 == 0 && holds(t.soFar()) {
				return true
			}
		}
	}
}
