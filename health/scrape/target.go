package scrape

import (
	"net/netip"
	"time"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Target is an endpoint and where its metrics are.
type Target struct {
	Endpoint world.EndpointKey
	// Address is the endpoint's own, or one with another port.
	Address netip.AddrPort
	// Path is where the metrics are: it begins with "/".
	Path string
	// Interval is the time between two scrapes.
	Interval time.Duration
}

// Targets are the endpoints of a policy set whose capacity is read from metrics, in the set's order; none of nil.
func Targets(set *policies.Set) []Target {
	if set == nil {
		return nil
	}
	var targets []Target
	for i := range set.Services {
		s := &set.Services[i]
		if s.Spec.Capacity.Source != policies.CapacityVLLM {
			continue
		}
		for _, p := range s.Spec.Pools {
			pool := world.PoolKey{Service: s.Metadata.Name, Cluster: p.Cluster}
			for _, a := range p.Endpoints {
				targets = append(targets, targetOf(world.EndpointKey{Pool: pool, Address: a.AddrPort()}, s.Spec.Capacity))
			}
		}
	}
	return targets
}

func targetOf(e world.EndpointKey, c policies.Capacity) Target {
	t := Target{Endpoint: e, Address: e.Address, Path: c.MetricsPath, Interval: c.Interval.Std()}
	if c.MetricsPort != 0 {
		t.Address = netip.AddrPortFrom(e.Address.Addr(), c.MetricsPort)
	}
	return t
}
