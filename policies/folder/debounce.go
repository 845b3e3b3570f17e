package folder

import "time"

// mostQuiets is how many times the quiet time a wait lasts at most, however often it is prolonged.
const mostQuiets = 10

// debounce waits until nothing has happened for a while.
type debounce struct {
	quiet time.Duration
	timer *time.Timer
	since time.Time // when the wait began; zero where none is on
}

func newDebounce(quiet time.Duration) *debounce {
	timer := time.NewTimer(quiet)
	timer.Stop()
	return &debounce{quiet: quiet, timer: timer}
}

// begin begins to wait, or waits longer.
func (d *debounce) begin(now time.Time) {
	if d.since.IsZero() {
		d.since = now
	}
	d.timer.Reset(min(d.quiet, d.since.Add(mostQuiets*d.quiet).Sub(now)))
}

// over is ready when the wait is over.
func (d *debounce) over() <-chan time.Time { return d.timer.C }

func (d *debounce) end() { d.since = time.Time{} }

func (d *debounce) stop() { d.timer.Stop() }
