package health_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// start is when every test's world begins.
var start = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

var (
	fra = world.PoolKey{Service: "chat", Cluster: "fra"}
	iad = world.PoolKey{Service: "chat", Cluster: "iad"}
)

// site is a world in which the service "chat" has two endpoints in each of the clusters fra and iad: probed each 500ms
// with a timeout of 500ms and thresholds of 2 failures and 3 successes, scraped each second.
type site struct {
	writer world.Writer
	now    time.Time
}

func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{now: start}
	s.writer.Commit([]world.Fact{world.PoliciesLoaded{Set: chat(2)}, world.TimeAdvanced{Now: start}})
	if len(s.writer.Current().Pools()) != 2 {
		t.Fatal("the site has not two pools")
	}
	return s
}

// chat is the policy set with n endpoints in each cluster.
func chat(n int) *policies.Set {
	service := policies.Service{Metadata: policies.Metadata[policies.ServiceName]{Name: "chat"}}
	service.Spec.Health = policies.HealthCheck{
		Interval: policies.Duration(500 * time.Millisecond), Timeout: policies.Duration(500 * time.Millisecond),
		UnhealthyThreshold: 2, HealthyThreshold: 3,
	}
	service.Spec.Capacity = policies.Capacity{
		Source: policies.CapacityVLLM, SlotsPerEndpoint: 100, Interval: policies.Duration(time.Second),
	}
	set := &policies.Set{Hash: "chat"}
	for _, name := range []policies.ClusterName{"fra", "iad"} {
		set.Clusters = append(set.Clusters, policies.Cluster{Metadata: policies.Metadata[policies.ClusterName]{Name: name}})
		pool := policies.Pool{Cluster: name}
		for i := range n {
			pool.Endpoints = append(pool.Endpoints, policies.Address{Address: addressOf(i).Addr(), Port: addressOf(i).Port()})
		}
		service.Spec.Pools = append(service.Spec.Pools, pool)
	}
	set.Services = []policies.Service{service}
	return set
}

func addressOf(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 8000)
}

func endpoint(pool world.PoolKey, i int) world.EndpointKey {
	return world.EndpointKey{Pool: pool, Address: addressOf(i)}
}

// judge moves the clock and commits what follows from signals, whose times are set to now where they are unset.
func (s *site) judge(after time.Duration, signals ...health.Signal) []world.Fact {
	s.now = s.now.Add(after)
	for i := range signals {
		signals[i] = atTime(signals[i], s.now)
	}
	facts := health.Judge(s.writer.Current(), signals, s.now, nil)
	s.writer.Commit(append([]world.Fact{world.TimeAdvanced{Now: s.now}}, facts...))
	return facts
}

func atTime(signal health.Signal, at time.Time) health.Signal {
	switch s := signal.(type) {
	case health.Probed:
		if s.At.IsZero() {
			s.At = at
		}
		return s
	case health.Scraped:
		if s.At.IsZero() {
			s.At = at
		}
		return s
	case health.Reported:
		if s.At.IsZero() {
			s.At = at
		}
		return s
	}
	return signal
}

func (s *site) endpoint(pool world.PoolKey, i int) world.Endpoint {
	return s.writer.Current().Pool(pool).Endpoints[i]
}

func ok(pool world.PoolKey, i int) health.Signal {
	return health.Probed{Endpoint: endpoint(pool, i), OK: true}
}

func fails(pool world.PoolKey, i int) health.Signal {
	return health.Probed{Endpoint: endpoint(pool, i), Cause: "connection refused"}
}

// report is of requests that entered at gateway/fra/fra over the last second.
func report(cluster policies.ClusterName, succeeded, inProgress uint64) health.Signal {
	return health.Reported{
		Viewpoint: "gateway/fra/fra", Service: "chat", Class: world.AnyClass, Cluster: cluster,
		Succeeded: succeeded, Issued: succeeded, InProgress: inProgress, Interval: time.Second,
	}
}
