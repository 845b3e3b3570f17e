package schedule_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/meridian-mesh/meridian/health/internal/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run is one outcome: of whom, and when it began.
type run struct {
	target string
	at     time.Time
}

// fixture is a Scheduler in a bubble of fake time. Targets are named "group/name".
type fixture struct {
	*schedule.Scheduler[string, run]
	takes map[string]time.Duration // how long a run takes; set before Update

	mu   sync.Mutex
	runs []run // under mu
}

// start runs a Scheduler until the test's function has ended.
func start(t *testing.T, workers int) *fixture {
	f := &fixture{takes: map[string]time.Duration{}}
	f.Scheduler = schedule.New(schedule.Config[string, run]{
		Every: func(string) time.Duration { return time.Second },
		Name:  func(target string) string { return target },
		Group: func(target string) string { group, _, _ := strings.Cut(target, "/"); return group },
		Do: func(ctx context.Context, target string) run {
			began := time.Now()
			select {
			case <-time.After(f.takes[target]):
			case <-ctx.Done():
			}
			return run{target, began}
		},
		Deliver: func(r run) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.runs = append(f.runs, r)
		},
		Workers: workers,
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return f
}

// rest lets time pass, and then all that is due happen.
func rest(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// all are the runs so far.
func (f *fixture) all() []run {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.runs)
}

// count is how many runs a target has had.
func (f *fixture) count(target string) int {
	n := 0
	for _, r := range f.all() {
		if r.target == target {
			n++
		}
	}
	return n
}

func TestEveryTargetHasItsTurnInEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 8)
		f.Update([]string{"fra/a", "fra/b", "iad/c", "fra/a"})
		rest(10 * time.Second)
		for _, target := range []string{"fra/a", "fra/b", "iad/c"} {
			if n := f.count(target); n != 10 {
				t.Errorf("%s had %d runs in ten intervals", target, n)
			}
		}
		if got := f.Stats(); got != (schedule.Stats{Targets: 3}) {
			t.Errorf("stats are %+v", got)
		}
	})
}

func TestTurnsAreSpreadAndTheSameAfterARestart(t *testing.T) {
	turns := func() (spread map[string]time.Duration, busiest int) {
		spread = map[string]time.Duration{}
		synctest.Test(t, func(t *testing.T) {
			rest(321 * time.Millisecond)
			f := start(t, 1000)
			var targets []string
			for i := range 1000 {
				targets = append(targets, fmt.Sprintf("fra/%d", i))
			}
			f.Update(targets)
			rest(time.Second)
			perTenth := map[time.Duration]int{}
			for _, r := range f.all() {
				turn := r.at.Sub(r.at.Truncate(time.Second))
				spread[r.target] = turn
				perTenth[turn/(100*time.Millisecond)]++
				busiest = max(busiest, perTenth[turn/(100*time.Millisecond)])
			}
		})
		return spread, busiest
	}
	first, busiest := turns()
	if len(first) != 1000 || busiest > 150 {
		t.Errorf("%d targets had a turn; %d of them in the same tenth of the interval", len(first), busiest)
	}
	second, _ := turns()
	for target, turn := range first {
		if second[target] != turn {
			t.Fatalf("%s had its turn at %v, and after a restart at %v", target, turn, second[target])
		}
	}
}

func TestUpdateKeepsTurnsAndStopsWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 8)
		f.Update([]string{"fra/a", "fra/b"})
		rest(2 * time.Second)
		f.Update([]string{"fra/b", "fra/c"})
		rest(3 * time.Second)
		if a, b, c := f.count("fra/a"), f.count("fra/b"), f.count("fra/c"); a != 2 || b != 5 || c != 3 {
			t.Errorf("a had %d runs, b %d, c %d; want 2, 5, 3", a, b, c)
		}
		f.Update(nil)
		synctest.Wait()
		before := len(f.all())
		rest(time.Minute)
		if len(f.all()) != before || f.Stats().Targets != 0 {
			t.Errorf("without targets there were %d runs", len(f.all())-before)
		}
	})
}

func TestWhatIsGoneInTheMiddleOfARunIsNotDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 8)
		f.takes["fra/a"] = 10 * time.Second
		f.Update([]string{"fra/a"})
		rest(2 * time.Second)
		if f.Stats().InFlight != 1 {
			t.Fatalf("stats are %+v in the middle of the run", f.Stats())
		}
		f.Update(nil)
		rest(10 * time.Second)
		if len(f.all()) != 0 || f.Stats().InFlight != 0 {
			t.Errorf("a target that is gone gave %v", f.all())
		}
	})
}

func TestATargetThatComesBackIsNotRunTwiceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 8)
		f.takes["fra/a"] = 10 * time.Second
		f.Update([]string{"fra/a"})
		rest(2 * time.Second)
		f.Update(nil)
		synctest.Wait()
		f.Update([]string{"fra/a"})
		rest(2 * time.Second)
		if got := f.Stats(); got.InFlight != 1 || got.Targets != 1 {
			t.Errorf("stats are %+v", got)
		}
		rest(10 * time.Second)
		if n := f.count("fra/a"); n != 1 {
			t.Errorf("%d runs ended, not the one", n)
		}
	})
}

func TestASlowTargetIsRunAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 8)
		f.takes["fra/slow"] = 1500 * time.Millisecond
		f.Update([]string{"fra/slow"})
		rest(10 * time.Second)
		runs := f.all()
		for i := 1; i < len(runs); i++ {
			if gap := runs[i].at.Sub(runs[i-1].at); gap != 1500*time.Millisecond {
				t.Errorf("run %d came %v after the one before", i, gap)
			}
		}
		if n := len(runs); n < 5 {
			t.Errorf("only %d runs", n)
		}
	})
}

func TestASilentGroupDoesNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 4)
		var targets []string
		for i := range 50 {
			targets = append(targets, fmt.Sprintf("silent/%d", i))
			f.takes[targets[i]] = time.Second
		}
		f.Update(append(targets, "fra/a", "iad/b"))
		rest(10 * time.Second)
		if a, b := f.count("fra/a"), f.count("iad/b"); a != 10 || b != 10 {
			t.Errorf("beside a silent group a had %d runs and b %d in ten intervals", a, b)
		}
		if got := f.Stats(); got.InFlight > 2 || got.Late == 0 {
			t.Errorf("stats are %+v with half of 4 workers for 50 silent targets", got)
		}
		// Every silent target gets its turn some time: nobody starves within the group either.
		rest(40 * time.Second)
		slices.Sort(targets)
		for _, target := range targets {
			if f.count(target) == 0 {
				t.Errorf("%s never had a turn", target)
			}
		}
	})
}

func TestRunEndsWhileWorkIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 2)
		f.takes["fra/a"], f.takes["fra/b"], f.takes["iad/c"] = time.Hour, time.Hour, time.Hour
		f.Update([]string{"fra/a", "fra/b", "iad/c"})
		rest(2 * time.Second)
		if got := f.Stats().InFlight; got != 2 {
			t.Errorf("%d of 2 workers are at work", got)
		}
	})
}

// BenchmarkUpdate takes over a fleet of 100,000 targets of which one is new.
func BenchmarkUpdate(b *testing.B) {
	sets := [2][]string{}
	for i := range 100_000 {
		target := fmt.Sprintf("fra/%d", i)
		sets[0], sets[1] = append(sets[0], target), append(sets[1], target)
	}
	sets[1][0] = "fra/new"
	taken := make(chan struct{})
	s := schedule.New(schedule.Config[string, struct{}]{
		Every: func(string) time.Duration { return time.Hour },
		Name:  func(t string) string { return t },
		Group: func(t string) string {
			if t == "fra/99999" { // the last of the set
				taken <- struct{}{}
			}
			return ""
		},
		Do: func(context.Context, string) struct{} { return struct{}{} }, Deliver: func(struct{}) {}, Workers: 1,
	})
	go s.Run(b.Context())
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Update(sets[i%2])
		<-taken
	}
}
