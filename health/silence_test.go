package health_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/health/internal/schedule"
	"github.com/meridian-mesh/meridian/world"
)

// Every endpoint of fra falls silent at once, at some moment in the interval between two probes: each probe from then
// on takes its whole timeout. With the default check no verdict is still Healthy two seconds later.
func TestSilenceIsNoticedWithinTwoSeconds(t *testing.T) {
	const endpoints = 20 // each has its turn at another moment
	for moment := 50 * time.Millisecond; moment <= half; moment += 150 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			silentFrom := time.Now().Add(2*second + moment)
			var writer world.Writer
			var current atomic.Pointer[world.World]
			commit := func(facts []world.Fact) {
				w, _ := writer.Commit(facts)
				current.Store(w)
			}
			commit([]world.Fact{world.PoliciesLoaded{Set: chat(endpoints)}})
			s := schedule.New(schedule.Config[world.EndpointKey, health.Probed]{
				Every: func(world.EndpointKey) time.Duration { return half },
				Name:  world.EndpointKey.String, Group: func(e world.EndpointKey) string { return e.Pool.String() },
				Do: func(ctx context.Context, e world.EndpointKey) health.Probed { return probe(ctx, e, silentFrom) },
				Deliver: func(p health.Probed) {
					commit(health.Judge(current.Load(), []health.Signal{p}, time.Now(), nil))
				},
				Workers: 2 * endpoints,
			})
			var targets []world.EndpointKey
			for i := range endpoints {
				targets = append(targets, endpoint(fra, i))
			}
			s.Update(targets)
			go s.Run(t.Context())
			<-time.After(time.Until(silentFrom))
			synctest.Wait()
			if got := countHealthy(current.Load()); got != endpoints {
				t.Errorf("%d of %d endpoints were healthy before the silence", got, endpoints)
			}
			<-time.After(2 * second)
			synctest.Wait()
			if got := countHealthy(current.Load()); got != 0 {
				t.Errorf("two seconds into the silence %d endpoints are still held to be healthy", got)
			}
		})
	}
}

// probe answers at once, or from a moment on not at all.
func probe(ctx context.Context, e world.EndpointKey, silentFrom time.Time) health.Probed {
	ok := time.Now().Before(silentFrom)
	if !ok {
		select {
		case <-time.After(half):
		case <-ctx.Done():
		}
	}
	return health.Probed{Endpoint: e, OK: ok, At: time.Now()}
}

func countHealthy(w *world.World) (n int) {
	for _, e := range w.Pool(fra).Endpoints {
		if e.Health.Verdict == world.Healthy {
			n++
		}
	}
	return n
}
