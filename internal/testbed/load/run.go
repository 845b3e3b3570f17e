package load

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Run sends requests until Config's Duration or number is reached, or ctx ends, and returns once each has ended. Those
// that the end of ctx interrupted are counted as such, not as failed. It fails only for a Config that makes no sense.
func Run(ctx context.Context, c Config) (*Report, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &runner{config: c, client: newClient(c), start: time.Now(), results: make(chan Result, 1024)}
	defer r.client.CloseIdleConnections()
	report := newReport(r.start)
	go func() {
		defer close(r.results)
		if c.Rate > 0 {
			r.openLoop(ctx)
		} else {
			r.closedLoop(ctx)
		}
	}()
	for result := range r.results {
		report.add(result)
		if c.Observe != nil {
			c.Observe(result)
		}
	}
	report.finish(time.Since(r.start))
	return report, nil
}

// runner is one run.
type runner struct {
	config  Config
	client  *http.Client
	start   time.Time
	results chan Result
}

func newClient(c Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			MaxIdleConns: 0, MaxIdleConnsPerHost: c.Concurrency, IdleConnTimeout: time.Minute, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// openLoop begins the n-th request n/Rate seconds after the start. One that is late, for want of a slot or of processor
// time, begins at once: its latency counts from when it was due.
func (r *runner) openLoop(ctx context.Context) {
	var inFlight sync.WaitGroup
	defer inFlight.Wait()
	slots := make(chan struct{}, r.config.Concurrency)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := range r.config.Requests {
		after := time.Duration(float64(n) / r.config.Rate * float64(time.Second))
		if d := r.config.Duration; d > 0 && after >= d {
			return
		}
		timer.Reset(time.Until(r.start.Add(after)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		inFlight.Go(func() {
			r.results <- r.send(ctx, n, after)
			<-slots
		})
	}
}

// closedLoop has each caller send its next request once it has the answer to the last.
func (r *runner) closedLoop(ctx context.Context) {
	numbers := make(chan int)
	var callers sync.WaitGroup
	defer callers.Wait()
	defer close(numbers)
	for range r.config.Concurrency {
		callers.Go(func() {
			for n := range numbers {
				r.results <- r.send(ctx, n, time.Since(r.start))
			}
		})
	}
	over := make(<-chan time.Time) // never, unless there is a limit
	if d := r.config.Duration; d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	for n := range r.config.Requests {
		select {
		case numbers <- n:
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}
