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

// Targets are the endpoints of all pools of a policy set, in its order; none of nil.
func Targets(set *policies.Set) []Target {
	if set == nil {
		return nil
	}
	var targets []Target
	for _, s := range set.Services {
		for _, p := range s.Spec.Pools {
			pool := world.PoolKey{Service: s.Metadata.Name, Cluster: p.Cluster}
			for _, a := range p.Endpoints {
				targets = append(targets, Target{world.EndpointKey{Pool: pool, Address: a.AddrPort()}, s.Spec.Health})
			}
		}
	}
	return targets
}
