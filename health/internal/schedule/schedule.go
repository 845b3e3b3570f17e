package schedule

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Config says what is done to targets T, and what becomes of the outcomes O. All fields are required.
type Config[T comparable, O any] struct {
	// Every is the time between two runs for a target: positive.
	Every func(T) time.Duration
	// Name decides where in its interval a target's turn is, so that many targets don't come in bursts.
	Name func(T) string
	// Group is what targets fail together with, such as their cluster: one group gets at most half of the workers,
	// so that one that has gone silent doesn't hold up the others.
	Group func(T) string
	// Do is done to a target, never twice at a time. It must return soon after its context ends.
	Do func(context.Context, T) O
	// Deliver takes each outcome, from the loop: it must not block. Outcomes of targets that have been taken away
	// meanwhile are dropped.
	Deliver func(O)
	// Workers is how many targets may be worked on at a time: positive.
	Workers int
}

// Stats are counts since New.
type Stats struct {
	// Targets and InFlight are of now.
	Targets, InFlight int
	// Late counts the runs that began more than an interval after their turn, for want of workers.
	Late uint64
}

// Scheduler is a schedule under way. Make one with New.
type Scheduler[T comparable, O any] struct {
	// Set once.
	config  Config[T, O]
	done    chan outcome[T, O]
	changed chan struct{} // holds a token while latest has not been taken over

	// Under mu.
	mu     sync.Mutex
	latest []T

	// Only by the loop.
	entries map[T]*entry[T]
	queue   queue[T] // those that wait for their turn
	busy    int

	// Atomic.
	targets, inFlight atomic.Int64
	late              atomic.Uint64
}

// outcome is what came of one run.
type outcome[T comparable, O any] struct {
	entry *entry[T]
	value O
}

// New makes a Scheduler without targets.
func New[T comparable, O any](c Config[T, O]) *Scheduler[T, O] {
	return &Scheduler[T, O]{
		config: c, done: make(chan outcome[T, O]), changed: make(chan struct{}, 1),
		entries: map[T]*entry[T]{},
	}
}

// Update sets the targets. Those that stay keep their turn; a target of which anything is changed is another one.
func (s *Scheduler[T, O]) Update(targets []T) {
	s.mu.Lock()
	s.latest = targets
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Stats are the counts now.
func (s *Scheduler[T, O]) Stats() Stats {
	return Stats{Targets: int(s.targets.Load()), InFlight: int(s.inFlight.Load()), Late: s.late.Load()}
}

// Run works until ctx ends, and returns when all that it started has ended. It may be called once.
func (s *Scheduler[T, O]) Run(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
			s.replace(time.Now())
		case o := <-s.done:
			s.finish(o, time.Now())
		case <-timer.C:
		}
		now := time.Now()
		s.begin(now, func(e *entry[T]) { workers.Go(func() { s.work(ctx, e) }) })
		if len(s.queue) > 0 && s.busy < s.config.Workers {
			timer.Reset(s.queue[0].due.Sub(now))
		}
	}
}

// work is one run, in a goroutine of its own.
func (s *Scheduler[T, O]) work(ctx context.Context, e *entry[T]) {
	value := s.config.Do(ctx, e.target)
	if ctx.Err() != nil { // the end of the schedule is nothing that a target did
		return
	}
	select {
	case s.done <- outcome[T, O]{e, value}:
	case <-ctx.Done():
	}
}
