package health_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

func drawSignal(t *rapid.T, now time.Time) health.Signal {
	pool := rapid.SampledFrom([]world.PoolKey{fra, iad, {Service: "chat", Cluster: "mars"}}).Draw(t, "pool")
	key := endpoint(pool, rapid.IntRange(0, 2).Draw(t, "endpoint"))
	at := now.Add(-time.Duration(rapid.IntRange(-2, 20).Draw(t, "ago")) * 100 * time.Millisecond)
	n := rapid.IntRange(0, 5).Draw(t, "n")
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return health.Scraped{Endpoint: key, Running: n, Err: rapid.SampledFrom([]string{"", "timeout"}).Draw(t, "err"), At: at}
	case 1:
		return health.Reported{
			Viewpoint: rapid.SampledFrom([]world.ViewpointID{"a/b/c", "d/e/f"}).Draw(t, "viewpoint"), Service: "chat",
			Class: world.AnyClass, Cluster: pool.Cluster, Succeeded: uint64(n), Issued: 5, InProgress: uint64(n), Interval: second, At: at,
		}
	}
	return health.Probed{Endpoint: key, OK: rapid.Bool().Draw(t, "ok"), Cause: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "cause"), At: at}
}

// In whatever order the signals of a call are given, and whatever a memo has seen, the facts are the same; and Judge changes neither
// its world nor its signals.
func TestOrderOfSignalsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w world.Writer
		w.Commit([]world.Fact{world.PoliciesLoaded{Set: chat(2)}})
		now := start
		var memo health.Memo
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.IntRange(0, 5).Draw(t, "reload") == 0 {
				w.Commit([]world.Fact{world.PoliciesLoaded{Set: chat(rapid.IntRange(1, 3).Draw(t, "endpoints"))}})
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "after")) * 100 * time.Millisecond)
			signals := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) health.Signal { return drawSignal(t, now) }), 0, 15).Draw(t, "signals")
			shuffled := rapid.Permutation(signals).Draw(t, "shuffled")
			given := slices.Clone(signals)
			facts := health.Judge(w.Current(), signals, now, &memo)
			if diff := cmp.Diff(facts, health.Judge(w.Current(), shuffled, now, nil), compareValues); diff != "" {
				t.Fatalf("the order of signals matters:\n%s", diff)
			}
			if diff := cmp.Diff(given, signals, compareValues); diff != "" {
				t.Fatalf("Judge changed its signals:\n%s", diff)
			}
			w.Commit(facts)
			if again := health.Judge(w.Current(), signals, now, nil); countVerdicts(again) > 0 {
				t.Fatalf("the same signals again give %v", again)
			}
		}
	})
}

var compareValues = cmp.Options{
	cmp.Comparer(func(a, b world.EndpointKey) bool { return a == b }),
	cmp.Comparer(func(a, b health.Signal) bool { return a == b }),
}

func countVerdicts(facts []world.Fact) (n int) {
	for _, f := range facts {
		switch f.(type) {
		case world.EndpointJudged, world.EndpointMeasured:
			n++
		}
	}
	return n
}

// No verdict changes faster than its threshold: whenever an endpoint becomes unhealthy, the newest outcomes have been
// that many failures in a row, and whenever it becomes healthy again, that many successes.
func TestNoVerdictFlapsFasterThanItsThreshold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unhealthyAfter, healthyAfter := rapid.IntRange(1, 4).Draw(t, "unhealthy"), rapid.IntRange(1, 4).Draw(t, "healthy")
		set := chat(1)
		set.Services[0].Spec.Health.UnhealthyThreshold = unhealthyAfter
		set.Services[0].Spec.Health.HealthyThreshold = healthyAfter
		var w world.Writer
		w.Commit([]world.Fact{world.PoliciesLoaded{Set: set}})
		now, run, last := start, 0, false
		for i := range rapid.IntRange(1, 60).Draw(t, "probes") {
			now = now.Add(half)
			ok := rapid.Bool().Draw(t, "ok")
			if run++; ok != last {
				run, last = 1, ok
			}
			before := w.Current().Pool(fra).Endpoints[0].Health.Verdict
			w.Commit(health.Judge(w.Current(), []health.Signal{health.Probed{Endpoint: endpoint(fra, 0), OK: ok, At: now}}, now, nil))
			after := w.Current().Pool(fra).Endpoints[0].Health.Verdict
			threshold := map[world.Verdict]int{world.Healthy: healthyAfter, world.Unhealthy: unhealthyAfter}[after]
			if first := i == 0 && after == world.Healthy; !first && before != after && run < threshold {
				t.Fatalf("verdict %d became %d after %d equal outcomes in a row, with the threshold %d", before, after, run, threshold)
			}
		}
	})
}

// BenchmarkJudge judges a fleet in which nothing, or one endpoint in a hundred, has news.
func BenchmarkJudge(b *testing.B) {
	set := chat(0)
	for p := range set.Services[0].Spec.Pools {
		for i := range 50_000 {
			a := addressOf(i)
			set.Services[0].Spec.Pools[p].Endpoints = append(set.Services[0].Spec.Pools[p].Endpoints, policies.Address{Address: a.Addr(), Port: a.Port()})
		}
	}
	var w world.Writer
	w.Commit([]world.Fact{world.PoliciesLoaded{Set: set}})
	var all, some []health.Signal
	for i := range 50_000 {
		s := health.Probed{Endpoint: endpoint(fra, i), OK: true, At: start}
		if all = append(all, s); i%50 == 0 {
			s.At = start.Add(half)
			some = append(some, s)
		}
	}
	w.Commit(health.Judge(w.Current(), all, start, nil))
	var memo health.Memo
	for name, signals := range map[string][]health.Signal{"signals=0": nil, "signals=1000": some} {
		for with, memo := range map[string]*health.Memo{"memo": &memo, "scratch": nil} {
			b.Run("endpoints=100000/"+name+"/"+with, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					health.Judge(w.Current(), signals, start.Add(half), memo)
				}
			})
		}
	}
}
