package modelserver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Why the engine takes no sequence.
var (
	errQueueFull = errors.New("the queue is full")
	errTooLong   = errors.New("the request does not fit in the KV cache")
)

// engine is a continuously batching scheduler. Its clock is one timer: a step is planned, its time passes, and its
// tokens are there.
type engine struct {
	// Set once.
	config Config
	wake   chan struct{} // holds one token, put there when a sequence comes

	slowdown atomic.Uint64 // times a thousand; see setSlowdown

	// Under mu.
	mu          sync.Mutex
	waiting     []*sequence // first come, first served; what was preempted is in front
	running     []*sequence // in the order of admission
	freeBlocks  int
	preemptions uint64
}

// sequence is one request in the engine.
type sequence struct {
	// Set once.
	prompt, output int // tokens
	submitted      time.Time
	tokens         chan struct{} // one for each token, holds all of them; closed after the last

	// Under the engine's mu.
	toCompute int // tokens of the prompt, or of what a preemption lost, that are not computed yet
	computed  int // tokens in the KV cache
	generated int
	blocks    int
	chunk     int // tokens that the step in progress computes

	// Under the engine's mu until tokens is closed, and fixed then.
	first, last time.Time // when the first and the newest token were there
}

// stats are what the gauges show.
type stats struct {
	running, waiting int
	kvCacheUse       float64 // 0 to 1
	preemptions      uint64
}

func newEngine(c Config) *engine {
	e := &engine{config: c, wake: make(chan struct{}, 1), freeBlocks: c.KVBlocks}
	e.setSlowdown(1)
	return e
}

// submit queues a sequence. Its tokens come over its channel, as fast as the engine makes them: it never waits for the
// reader. The caller must abort it if it does not read to the end.
func (e *engine) submit(prompt, output int) (*sequence, error) {
	if prompt+output > e.config.capacity() {
		return nil, errTooLong
	}
	s := &sequence{
		prompt: prompt, output: output, toCompute: prompt,
		submitted: time.Now(), tokens: make(chan struct{}, output),
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if limit := e.config.MaxQueue; limit > 0 && len(e.running)+len(e.waiting) >= e.config.Slots+limit {
		return nil, errQueueFull
	}
	e.waiting = append(e.waiting, s)
	select {
	case e.wake <- struct{}{}:
	default:
	}
	return s, nil
}

// abort takes a sequence out, whether or not it has ended.
func (e *engine) abort(s *sequence) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.release(s)
	e.waiting = remove(e.waiting, s)
	e.running = remove(e.running, s)
}

func (e *engine) stats() stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return stats{
		running: len(e.running), waiting: len(e.waiting), preemptions: e.preemptions,
		kvCacheUse: 1 - float64(e.freeBlocks)/float64(e.config.KVBlocks),
	}
}

// setSlowdown makes each step take that many times as long.
func (e *engine) setSlowdown(times float64) { e.slowdown.Store(uint64(times * 1000)) }

// run steps until ctx ends. What has not ended by then gets no more tokens.
func (e *engine) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		took, busy := e.begin()
		if !busy {
			select {
			case <-e.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		timer.Reset(took)
		select {
		case <-timer.C:
			e.finish(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// begin plans the next step, and says how long it takes; busy is whether there is anything to do.
func (e *engine) begin() (took time.Duration, busy bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	decoding, prefill := e.schedule()
	if decoding+prefill == 0 {
		return 0, false
	}
	c := e.config
	step := float64(prefill) / c.PrefillRate * float64(time.Second)
	if decoding > 0 {
		step += float64(c.TimePerOutputToken) * (1 + c.BatchSlowdown*float64(decoding-1))
	}
	return time.Duration(step * float64(e.slowdown.Load()) / 1000 / c.Speed), true
}

// schedule gives each running sequence what it computes in this step, and admits those that wait while there are slots,
// blocks and tokens left. As in vLLM, a running sequence without a block for its next token preempts the one that came
// last, and a step that preempts admits none.
func (e *engine) schedule() (decoding, prefill int) {
	left, preempted := e.continueRunning(e.config.StepTokens)
	if !preempted {
		e.admit(left)
	}
	for _, s := range e.running {
		if s.toCompute > 0 {
			prefill += s.chunk
		} else {
			decoding += s.chunk
		}
	}
	return decoding, prefill
}

// continueRunning gives each running sequence its chunk out of the tokens left, and says what is left then.
func (e *engine) continueRunning(left int) (stillLeft int, preempted bool) {
	for i := 0; i < len(e.running); i++ {
		s := e.running[i]
		s.chunk = min(max(s.toCompute, 1), left)
		for !e.allocate(s) && len(e.running) > i {
			e.preemptLast() // at last s itself, whose chunk is 0 then
			preempted = true
		}
		left -= s.chunk
	}
	return left, preempted
}

// admit moves sequences from the queue to those that run, in order: one that does not fit holds up the rest.
func (e *engine) admit(left int) {
	for left > 0 && len(e.waiting) > 0 && len(e.running) < e.config.Slots {
		s := e.waiting[0]
		s.chunk = min(s.toCompute, left)
		if !e.allocate(s) {
			return
		}
		e.waiting = e.waiting[1:]
		e.running = append(e.running, s)
		left -= s.chunk
	}
}

// allocate takes the blocks that a sequence needs for its chunk, all or none.
func (e *engine) allocate(s *sequence) bool {
	size := e.config.BlockSize
	more := (s.computed+s.chunk+size-1)/size - s.blocks
	if more > e.freeBlocks {
		return false
	}
	e.freeBlocks -= more
	s.blocks += more
	return true
}

// preemptLast puts the sequence that was admitted last back in front of the queue. All that it had is computed anew.
func (e *engine) preemptLast() {
	last := len(e.running) - 1
	s := e.running[last]
	e.running = e.running[:last]
	e.release(s)
	s.toCompute, s.computed, s.chunk = s.prompt+s.generated, 0, 0
	e.waiting = slices.Insert(e.waiting, 0, s)
	e.preemptions++
}

func (e *engine) release(s *sequence) {
	e.freeBlocks += s.blocks
	s.blocks = 0
}

// finish hands out the tokens of the step that has passed.
func (e *engine) finish(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = slices.DeleteFunc(e.running, func(s *sequence) bool {
		done := s.advance(now)
		if done {
			e.release(s)
		}
		return done
	})
}

// advance counts what a step computed, and says whether that was the end. A step that completes the prompt yields the
// first token as well.
func (s *sequence) advance(now time.Time) (done bool) {
	s.computed += s.chunk
	s.toCompute = max(0, s.toCompute-s.chunk)
	if s.chunk == 0 || s.toCompute > 0 {
		return false
	}
	if s.generated == 0 {
		s.first = now
	}
	s.last = now
	s.generated++
	s.tokens <- struct{}{} // has room for all
	if s.generated == s.output {
		close(s.tokens)
		return true
	}
	return false
}

func remove(list []*sequence, s *sequence) []*sequence {
	return slices.DeleteFunc(list, func(other *sequence) bool { return other == s })
}
