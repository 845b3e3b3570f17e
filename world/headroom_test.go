package world_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

func TestHeadroom(t *testing.T) {
	vllm := policies.Capacity{Source: policies.CapacityVLLM, SlotsPerEndpoint: 100}
	static := policies.Capacity{Source: policies.CapacityStatic, SlotsPerEndpoint: 100}
	healthy := func(l world.Load) world.Endpoint {
		return world.Endpoint{Health: world.Health{Verdict: world.Healthy}, Load: l}
	}
	unknown := func(l world.Load) world.Endpoint { return world.Endpoint{Load: l} }
	unhealthy := world.Endpoint{Health: world.Health{Verdict: world.Unhealthy}, Load: world.Load{Running: 1, At: start}}

	for _, c := range []struct {
		name      string
		capacity  policies.Capacity
		endpoints []world.Endpoint
		want      world.Headroom
	}{
		{"no endpoint", vllm, nil, world.Headroom{}},
		{
			"slots less running and waiting", vllm,
			[]world.Endpoint{healthy(world.Load{Running: 30, Waiting: 5, At: start}), healthy(world.Load{Running: 10, At: start})},
			world.Headroom{Total: 2, Healthy: 2, Slots: 200, Running: 40, Waiting: 5, Free: 65 + 90},
		},
		{
			"one endpoint's queue takes nothing from another's slots", vllm,
			[]world.Endpoint{healthy(world.Load{Running: 100, Waiting: 70, At: start}), healthy(world.Load{At: start})},
			world.Headroom{Total: 2, Healthy: 2, Slots: 200, Running: 100, Waiting: 70, Free: 100},
		},
		{
			"the KV cache has room for less", vllm, []world.Endpoint{healthy(world.Load{Running: 10, KVCacheUse: 0.75, At: start})},
			world.Headroom{Total: 1, Healthy: 1, Slots: 100, Running: 10, Free: 25},
		},
		{
			"the KV cache is nearly full", vllm, []world.Endpoint{healthy(world.Load{Running: 10, KVCacheUse: 0.95, At: start})},
			world.Headroom{Total: 1, Healthy: 1, Slots: 100, Running: 10},
		},
		{
			"never measured: half", vllm, []world.Endpoint{healthy(world.Load{})},
			world.Headroom{Total: 1, Healthy: 1, Slots: 100, Free: 50},
		},
		{
			"stale: half", vllm, []world.Endpoint{healthy(world.Load{Running: 10, At: start, Stale: true})},
			world.Headroom{Total: 1, Healthy: 1, Slots: 100, Free: 50},
		},
		{
			"stale, and fuller than half when last heard of", vllm,
			[]world.Endpoint{healthy(world.Load{Running: 80, At: start, Stale: true})},
			world.Headroom{Total: 1, Healthy: 1, Slots: 100, Free: 20},
		},
		{
			"static capacity looks at no load", static,
			[]world.Endpoint{healthy(world.Load{}), healthy(world.Load{Running: 99, At: start, Stale: true})},
			world.Headroom{Total: 2, Healthy: 2, Slots: 200, Free: 200},
		},
		{
			"unknown endpoints don't count beside healthy ones", vllm,
			[]world.Endpoint{healthy(world.Load{At: start}), unknown(world.Load{At: start}), unhealthy},
			world.Headroom{Total: 3, Healthy: 1, Unknown: 1, Slots: 100, Free: 100},
		},
		{
			"unknown endpoints count where none is healthy", vllm,
			[]world.Endpoint{unknown(world.Load{Running: 1, At: start}), unhealthy},
			world.Headroom{Total: 2, Unknown: 1, Slots: 100, Running: 1, Free: 99},
		},
		{"none is up", vllm, []world.Endpoint{unhealthy}, world.Headroom{Total: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := &world.Pool{Endpoints: c.endpoints}
			if diff := cmp.Diff(c.want, pool.Headroom(c.capacity)); diff != "" {
				t.Errorf("headroom (-want +got):\n%s", diff)
			}
		})
	}
}
