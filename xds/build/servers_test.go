package build

import (
	"net/netip"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/world"
)

// What is about to end is drained, unless there is nothing better to send requests to.
func TestServersThatTerminate(t *testing.T) {
	const unspoken, drained, unhealthy = core.HealthStatus_UNKNOWN, core.HealthStatus_DRAINING, core.HealthStatus_UNHEALTHY
	for name, c := range map[string]struct {
		conditions []world.Condition
		want       []core.HealthStatus
	}{
		"beside a ready one":    {[]world.Condition{world.Terminating, world.Ready, world.Unready}, []core.HealthStatus{drained, unspoken, unhealthy}},
		"beside an unready one": {[]world.Condition{world.Terminating, world.Unready}, []core.HealthStatus{unspoken, unhealthy}},
		"alone":                 {[]world.Condition{world.Terminating}, []core.HealthStatus{unspoken}},
	} {
		p := &world.Pool{Unprobed: true}
		for i, condition := range c.conditions {
			p.Endpoints = append(p.Endpoints, world.Endpoint{Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 80), Condition: condition})
		}
		var got []core.HealthStatus
		for _, e := range servers(p) {
			got = append(got, e.GetHealthStatus())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
