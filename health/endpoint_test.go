package health_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

const (
	half   = 500 * time.Millisecond
	second = time.Second
)

// step says: after this long, these signals; then the first endpoint of fra has this verdict.
type step struct {
	after   time.Duration
	signals []health.Signal
	want    world.Verdict
}

var up, down = []health.Signal{ok(fra, 0)}, []health.Signal{fails(fra, 0)}

// verdictHistories are lists of steps.
var verdictHistories = map[string][]step{
	"nothing is known at first":          {{0, nil, world.Unknown}, {time.Hour, nil, world.Unknown}},
	"the first success of all is enough": {{half, up, world.Healthy}},
	"a first failure is not":             {{half, down, world.Unknown}, {half, down, world.Unhealthy}},
	"after a failure even a new endpoint needs its three successes": {
		{half, down, world.Unknown}, {half, up, world.Unknown}, {half, up, world.Unknown}, {half, up, world.Healthy},
	},
	"one failure among successes is forgiven": {
		{half, up, world.Healthy}, {half, down, world.Healthy}, {half, up, world.Healthy}, {half, down, world.Healthy},
	},
	"two failures in a row, and back by three successes in a row": {
		{half, up, world.Healthy}, {half, down, world.Healthy}, {half, down, world.Unhealthy},
		{half, up, world.Unhealthy}, {half, up, world.Unhealthy}, {half, down, world.Unhealthy},
		{half, up, world.Unhealthy}, {half, up, world.Unhealthy}, {half, up, world.Healthy},
	},
	"silence: held for three intervals and a timeout, then unknown": {
		{half, up, world.Healthy}, {2 * second, nil, world.Healthy}, {1, nil, world.Unknown},
	},
	"a failure is no silence": {
		{half, up, world.Healthy}, {2 * second, down, world.Healthy}, {2 * second, nil, world.Healthy},
	},
	"what was unhealthy decays too": {
		{half, down, world.Unknown}, {half, down, world.Unhealthy}, {2*second + 1, nil, world.Unknown},
	},
	"a streak does not outlive silence": {
		{half, up, world.Healthy}, {half, down, world.Healthy}, {3 * second, nil, world.Unknown},
		{half, down, world.Unknown}, {half, down, world.Unhealthy},
	},
	"after silence it takes its three successes again": {
		{half, up, world.Healthy}, {3 * second, nil, world.Unknown},
		{half, up, world.Unknown}, {half, up, world.Unknown}, {half, up, world.Healthy},
	},
	"a whole history at once is worked in by time": {
		{3 * half, []health.Signal{
			health.Probed{Endpoint: endpoint(fra, 0), At: start.Add(3 * half)},
			health.Probed{Endpoint: endpoint(fra, 0), At: start.Add(2 * half)},
			health.Probed{Endpoint: endpoint(fra, 0), At: start.Add(half), OK: true},
		}, world.Unhealthy},
	},
	"of two outcomes of one time the failure counts": {
		{half, down, world.Unknown}, {half, []health.Signal{ok(fra, 0), fails(fra, 0)}, world.Unhealthy},
	},
	"an old outcome that comes late is ignored": {
		{second, up, world.Healthy},
		{half, []health.Signal{health.Probed{Endpoint: endpoint(fra, 0), At: start.Add(half)}}, world.Healthy},
		{half, down, world.Healthy},
	},
	"an outcome so old that it is stale decides nothing": {
		{time.Minute, []health.Signal{health.Probed{Endpoint: endpoint(fra, 0), At: start.Add(second), OK: true}}, world.Unknown},
	},
	"a clock that is ahead keeps nothing fresh": {
		{half, []health.Signal{health.Probed{Endpoint: endpoint(fra, 0), At: start.Add(time.Hour), OK: true}}, world.Healthy},
		{3 * second, nil, world.Unknown},
	},
	"proxies are served by the pool, but nothing of it answers probes": {
		{half, []health.Signal{ok(fra, 0), fails(fra, 1)}, world.Healthy},
		{half, []health.Signal{fails(fra, 0), fails(fra, 1), report("fra", 9, 1)}, world.Healthy},
		// Both fail now. The other was last of the pool to be held healthy when these signals came.
		{half, []health.Signal{fails(fra, 0), fails(fra, 1)}, world.Unhealthy},
		{half, []health.Signal{fails(fra, 0), fails(fra, 1)}, world.Unknown},
		// No report for ServedFor: nothing speaks for the pool any more.
		{2 * second, []health.Signal{fails(fra, 0)}, world.Unknown},
		{1, []health.Signal{fails(fra, 0)}, world.Unhealthy},
	},
	"one endpoint is down, and the other serves the proxies": {
		{half, []health.Signal{ok(fra, 0), ok(fra, 1)}, world.Healthy},
		{half, []health.Signal{fails(fra, 0), ok(fra, 1), report("fra", 9, 1)}, world.Healthy},
		{half, []health.Signal{fails(fra, 0), ok(fra, 1), report("fra", 9, 1)}, world.Unhealthy},
	},
	"another cluster's successes don't speak for the pool": {
		{half, []health.Signal{fails(fra, 0), report("iad", 9, 1)}, world.Unknown},
		{half, []health.Signal{fails(fra, 0), report("iad", 9, 1)}, world.Unhealthy},
	},
	"reports of failures alone don't either": {
		{half, []health.Signal{fails(fra, 0), report("fra", 0, 1)}, world.Unknown},
		{half, []health.Signal{fails(fra, 0), report("fra", 0, 1)}, world.Unhealthy},
	},
}

func TestVerdictHistories(t *testing.T) {
	for name, history := range verdictHistories {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			for i, step := range history {
				s.judge(step.after, append([]health.Signal(nil), step.signals...)...)
				if got := s.endpoint(fra, 0).Health; got.Verdict != step.want {
					t.Fatalf("step %d: the verdict is %d, want %d: %+v", i+1, got.Verdict, step.want, got)
				}
			}
		})
	}
}

func TestHealthSaysSinceWhenAndWhy(t *testing.T) {
	s := newSite(t)
	s.judge(second, ok(fra, 0))
	s.judge(second, ok(fra, 0))
	want := world.Health{Verdict: world.Healthy, Since: start.Add(second), Streak: 2, At: start.Add(2 * second)}
	if diff := cmp.Diff(want, s.endpoint(fra, 0).Health); diff != "" {
		t.Errorf("healthy (-want +got):\n%s", diff)
	}
	s.judge(second, fails(fra, 0))
	s.judge(second, fails(fra, 0))
	want = world.Health{
		Verdict: world.Unhealthy, Since: start.Add(4 * second), Streak: -2, At: start.Add(4 * second), Cause: "connection refused",
	}
	if diff := cmp.Diff(want, s.endpoint(fra, 0).Health); diff != "" {
		t.Errorf("unhealthy (-want +got):\n%s", diff)
	}
	s.judge(time.Minute)
	want = world.Health{Since: start.Add(64 * second), At: start.Add(4 * second), Cause: "not probed for 2s"}
	if diff := cmp.Diff(want, s.endpoint(fra, 0).Health); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	if facts := s.judge(time.Minute); len(facts) != 0 {
		t.Errorf("once stale, time alone still gives %v", facts)
	}
}

// Each step: after this long, these signals; then the load of the first endpoint of fra is this.
func TestLoadHistory(t *testing.T) {
	read := func(running int) health.Signal {
		return health.Scraped{Endpoint: endpoint(fra, 0), Running: running, Waiting: 1, KVCacheUse: 0.5}
	}
	failed := health.Scraped{Endpoint: endpoint(fra, 0), Err: "status 500"}
	s := newSite(t)
	for i, step := range []struct {
		after   time.Duration
		signals []health.Signal
		want    world.Load
	}{
		{time.Hour, nil, world.Load{}},
		{0, []health.Signal{failed}, world.Load{Cause: "status 500"}},
		{second, []health.Signal{read(3)}, world.Load{Running: 3, Waiting: 1, KVCacheUse: 0.5, At: start.Add(time.Hour + second)}},
		{
			5 * second, []health.Signal{failed}, // held for three intervals and two seconds
			world.Load{Running: 3, Waiting: 1, KVCacheUse: 0.5, At: start.Add(time.Hour + second), Cause: "status 500"},
		},
		{
			1, nil,
			world.Load{Running: 3, Waiting: 1, KVCacheUse: 0.5, At: start.Add(time.Hour + second), Cause: "status 500", Stale: true},
		},
		{second, []health.Signal{read(4)}, world.Load{Running: 4, Waiting: 1, KVCacheUse: 0.5, At: start.Add(time.Hour + 7*second + 1)}},
		{
			0, []health.Signal{health.Scraped{Endpoint: endpoint(fra, 0), Running: 9, At: start}}, // late
			world.Load{Running: 4, Waiting: 1, KVCacheUse: 0.5, At: start.Add(time.Hour + 7*second + 1)},
		},
	} {
		s.judge(step.after, step.signals...)
		if diff := cmp.Diff(step.want, s.endpoint(fra, 0).Load); diff != "" {
			t.Fatalf("step %d (-want +got):\n%s", i+1, diff)
		}
	}
}

func TestSignalsAboutTheUnknownAreIgnored(t *testing.T) {
	s := newSite(t)
	mars := world.PoolKey{Service: "chat", Cluster: "mars"}
	facts := s.judge(second, ok(mars, 0), ok(fra, 77), ok(world.PoolKey{Service: "a", Cluster: "fra"}, 0),
		health.Scraped{Endpoint: endpoint(mars, 0)}, health.Reported{Service: "zzz", Interval: second, Issued: 1})
	if len(facts) != 0 {
		t.Errorf("facts about things that no policy names: %v", facts)
	}
	if facts := health.Judge(&world.World{}, []health.Signal{ok(fra, 0)}, start, nil); facts != nil {
		t.Errorf("facts in a world without policies: %v", facts)
	}
}

func TestStaleAfter(t *testing.T) {
	for _, c := range []struct {
		check policies.HealthCheck
		want  time.Duration
	}{
		{policies.HealthCheck{Interval: policies.Duration(half), Timeout: policies.Duration(half)}, 2 * second},
		{policies.HealthCheck{Interval: policies.Duration(half / 5), Timeout: policies.Duration(half)}, 2 * second},
		{policies.HealthCheck{Interval: policies.Duration(10 * second), Timeout: policies.Duration(second)}, 31 * second},
	} {
		if got := health.StaleAfter(c.check); got != c.want {
			t.Errorf("a check each %v is stale after %v, want %v", c.check.Interval, got, c.want)
		}
	}
}
