package modelserver

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// engineOf is an engine that is not running: the test steps it.
func engineOf(t *testing.T, c Config) *engine {
	t.Helper()
	c.Name, c.Models = "test", []string{"m"}
	c, err := c.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return newEngine(c)
}

func (e *engine) mustSubmit(t *testing.T, prompt, output int) *sequence {
	t.Helper()
	s, err := e.submit(prompt, output)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// step makes one step and says how long it took and whether there was anything to do.
func (e *engine) step() (time.Duration, bool) {
	took, busy := e.begin()
	e.finish(time.Now())
	return took, busy
}

// drain steps until nothing is left, and fails if that does not end.
func (e *engine) drain(t interface{ Fatal(...any) }) {
	for range 100_000 {
		if _, busy := e.step(); !busy {
			return
		}
	}
	t.Fatal("the engine never ends")
}

func TestStepsTakeTheTimeOfPrefillAndDecode(t *testing.T) {
	e := engineOf(t, Config{PrefillRate: 1000, TimePerOutputToken: 10 * time.Millisecond, BatchSlowdown: 0.1, StepTokens: 150})
	for range 3 {
		e.mustSubmit(t, 50, 3)
	}
	long := e.mustSubmit(t, 300, 2)
	want := []struct {
		name string
		took time.Duration
	}{
		{"three prompts fill the step", 150 * time.Millisecond},
		{"three decode, the long prompt gets the 147 tokens left", 147*time.Millisecond + 12*time.Millisecond},
		{"again, and the three are done", 147*time.Millisecond + 12*time.Millisecond},
		{"the rest of the long prompt", 6 * time.Millisecond},
		{"its second token, alone", 10 * time.Millisecond},
		{"nothing", 0},
	}
	for _, w := range want {
		if took, _ := e.step(); took != w.took {
			t.Errorf("%s: took %v, want %v", w.name, took, w.took)
		}
	}
	if got := len(long.tokens); got != 2 {
		t.Errorf("the long one has %d tokens, want 2", got)
	}
}

func TestSpeedAndSlowdownScaleTime(t *testing.T) {
	e := engineOf(t, Config{PrefillRate: 1000, Speed: 10})
	e.mustSubmit(t, 100, 2)
	if took, _ := e.step(); took != 10*time.Millisecond {
		t.Errorf("at 10 times the speed 100ms took %v", took)
	}
	e.setSlowdown(4)
	if took, _ := e.step(); took != 4*time.Millisecond {
		t.Errorf("slowed down 4 times, 1ms took %v", took)
	}
}

func TestFaultSlowReachesTheEngine(t *testing.T) {
	s, err := New(Config{Address: netip.MustParseAddrPort("127.0.0.1:0"), Name: "n", Models: []string{"m"}, PrefillRate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	for _, c := range []struct {
		slow float64
		want time.Duration
	}{{2.5, 250 * time.Millisecond}, {0, 100 * time.Millisecond}} {
		if err := s.SetFault(Fault{Slow: c.slow}); err != nil {
			t.Fatal(err)
		}
		s.engine.mustSubmit(t, 100, 1)
		if took, _ := s.engine.step(); took != c.want {
			t.Errorf("slow %v: took %v, want %v", c.slow, took, c.want)
		}
	}
}

func TestTheQueueIsFirstComeFirstServed(t *testing.T) {
	e := engineOf(t, Config{Slots: 2})
	var all []*sequence
	for range 4 {
		all = append(all, e.mustSubmit(t, 8, 3))
	}
	for step, want := range [][4]int{{1, 1, 0, 0}, {2, 2, 0, 0}, {3, 3, 0, 0}, {3, 3, 1, 1}, {3, 3, 2, 2}, {3, 3, 3, 3}} {
		e.step()
		for i, s := range all {
			if len(s.tokens) != want[i] {
				t.Errorf("step %d: sequence %d has %d tokens, want %d", step, i, len(s.tokens), want[i])
			}
		}
	}
	if got := e.stats(); got != (stats{}) {
		t.Errorf("at the end: %+v", got)
	}
}

func TestStats(t *testing.T) {
	e := engineOf(t, Config{Slots: 2, KVBlocks: 8, BlockSize: 4})
	for range 3 {
		e.mustSubmit(t, 8, 3)
	}
	e.step()
	if got, want := e.stats(), (stats{running: 2, waiting: 1, kvCacheUse: 0.5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestQueueLimit(t *testing.T) {
	e := engineOf(t, Config{Slots: 2, MaxQueue: 1})
	for range 3 {
		e.mustSubmit(t, 8, 3) // none runs before the first step: it counts what would
	}
	if _, err := e.submit(8, 3); !errors.Is(err, errQueueFull) {
		t.Errorf("a fourth request gave %v, want %v", err, errQueueFull)
	}
}

func TestTooLongForTheCache(t *testing.T) {
	e := engineOf(t, Config{KVBlocks: 4, BlockSize: 4})
	if _, err := e.submit(9, 8); !errors.Is(err, errTooLong) {
		t.Errorf("17 tokens for a cache of 16 gave %v, want %v", err, errTooLong)
	}
	e.mustSubmit(t, 8, 8)
	e.drain(t)
}

func TestAFullCachePreemptsTheNewest(t *testing.T) {
	e := engineOf(t, Config{KVBlocks: 4, BlockSize: 4})
	older, newer := e.mustSubmit(t, 4, 8), e.mustSubmit(t, 4, 8)
	for e.stats().preemptions == 0 {
		if _, busy := e.step(); !busy {
			t.Fatal("ended without a preemption")
		}
	}
	if got := e.stats(); got.running != 1 || got.waiting != 1 {
		t.Errorf("after the preemption: %+v, want one running and one waiting", got)
	}
	if len(older.tokens) <= len(newer.tokens) {
		t.Errorf("the older has %d tokens, the newer %d: the older was preempted", len(older.tokens), len(newer.tokens))
	}
	e.drain(t)
	if len(older.tokens) != 8 || len(newer.tokens) != 8 {
		t.Errorf("got %d and %d tokens, want 8 each", len(older.tokens), len(newer.tokens))
	}
}

func TestRunWakesForEachSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engineOf(t, Config{PrefillRate: 1000, TimePerOutputToken: 10 * time.Millisecond})
		go e.run(t.Context())
		for range 3 {
			start := time.Now()
			s := e.mustSubmit(t, 100, 10)
			for range s.tokens {
			}
			if took := time.Since(start); took != 190*time.Millisecond {
				t.Errorf("took %v, want 100ms of prefill and 9 times 10ms", took)
			}
			if first := s.first.Sub(s.submitted); first != 100*time.Millisecond {
				t.Errorf("the first token took %v, want 100ms", first)
			}
			<-time.After(time.Second) // of the bubble: idle between
		}
	})
}

// Whatever comes and goes: no more run than there are slots, blocks are neither lost nor made, and all that stay get all
// of their tokens.
func TestEngineProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := engineOf(t, Config{
			Slots: rapid.IntRange(1, 6).Draw(rt, "slots"), KVBlocks: rapid.IntRange(8, 20).Draw(rt, "blocks"),
			BlockSize: 4, StepTokens: rapid.IntRange(1, 40).Draw(rt, "step"),
		})
		var live []*sequence
		rt.Repeat(map[string]func(*rapid.T){
			"submit": func(rt *rapid.T) {
				if s, err := e.submit(rapid.IntRange(1, 20).Draw(rt, "prompt"), rapid.IntRange(1, 12).Draw(rt, "output")); err == nil {
					live = append(live, s)
				}
			},
			"abort": func(rt *rapid.T) {
				if len(live) > 0 {
					i := rapid.IntRange(0, len(live)-1).Draw(rt, "which")
					e.abort(live[i])
					live = append(live[:i], live[i+1:]...)
				}
			},
			"step": func(*rapid.T) { e.step() },
			"": func(rt *rapid.T) {
				used := 0
				for _, s := range e.running {
					used += s.blocks
				}
				if used+e.freeBlocks != e.config.KVBlocks || e.freeBlocks < 0 || len(e.running) > e.config.Slots {
					rt.Fatalf("%d blocks used, %d free of %d; %d running", used, e.freeBlocks, e.config.KVBlocks, len(e.running))
				}
			},
		})
		e.drain(rt)
		for _, s := range live {
			if len(s.tokens) != s.output {
				rt.Fatalf("a sequence has %d tokens, want %d", len(s.tokens), s.output)
			}
		}
	})
}
