package probe

import (
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Target is an endpoint and how it is probed.
type Target struct {
	Endpoint world.EndpointKey
	Check    policies.HealthCheck
}

// Targets are the endpoints of all pools that can be probed from here, in the order of the pools; none of a world without
// policies.
func Targets(w *world.World) []Target {
	var targets []Target
	for _, p := range w.Pools() {
		s, ok := w.Policies().Service(p.Key.Service)
		if !ok || p.Unprobed {
			continue
		}
		for i := range p.Endpoints {
			targets = append(targets, Target{world.EndpointKey{Pool: p.Key, Address: p.Endpoints[i].Address}, s.Spec.Health})
		}
	}
	return targets
}
