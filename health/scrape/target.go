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

// Targets are the endpoints whose capacity is read from metrics, and can be from here, in the order of the pools; none of a world
// without policies.
func Targets(w *world.World) []Target {
	var targets []Target
	for _, p := range w.Pools() {
		s, ok := w.Policies().Service(p.Key.Service)
		if !ok || p.Unprobed || s.Spec.Capacity.Source != policies.CapacityVLLM {
			continue
		}
		for i := range p.Endpoints {
			targets = append(targets, targetOf(world.EndpointKey{Pool: p.Key, Address: p.Endpoints[i].Address}, s.Spec.Capacity))
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
