package plan_test

import (
	"testing"
	"time"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
)

func TestReasonString(t *testing.T) {
	rules := []policies.ResidencyName{"eu", "licence"}
	for _, c := range []struct {
		reason plan.Reason
		want   string
	}{
		{plan.Reason{Code: plan.Nearest, RTT: 12 * time.Millisecond}, "is the nearest that can serve, 12 ms away"},
		{plan.Reason{Code: plan.Spill, Cluster: "fra-1", Slots: 32, RTT: 17_040 * time.Microsecond}, "takes what fra-1 has no room for (32 slots), 17.04 ms away"},
		{plan.Reason{Code: plan.Failover, RTT: time.Millisecond}, "stands by for failover, 1 ms away"},
		{plan.Reason{Code: plan.Preferred, RTT: time.Millisecond}, "is in a region that the Traffic policy prefers, 1 ms away"},
		{plan.Reason{Code: plan.Moving}, "is on its way to another share"},
		{plan.Reason{Code: plan.Unhealthy, Total: 4}, "has no healthy endpoint (0 of 4)"},
		{plan.Reason{Code: plan.Unhealthy, Total: 4, Cluster: "fra-1"}, "stands in for fra-1, which is nearer but has no healthy endpoint (0 of 4)"},
		{plan.Reason{Code: plan.UnknownHealth, Total: 2}, "has endpoints of which nothing fresh is known (0 of 2 healthy)"},
		{plan.Reason{Code: plan.Full, Slots: 8}, "has no room left (8 slots)"},
		{plan.Reason{Code: plan.Draining, Cluster: "fra-1"}, "stands in for fra-1, which is nearer but is being drained"},
		{plan.Reason{Code: plan.OutsideBoundary, Policies: rules}, "is outside the boundary of eu, licence"},
		{plan.Reason{Code: plan.OutsideFailover}, "is in a region that the Traffic policy does not fail over to"},
		{plan.Reason{Code: plan.Unreachable}, "is behind gateways, and the proxies here have no east-west identity"},
		{plan.Reason{Code: plan.UnknownLocation, Policies: rules[:1]}, "the client's country is needed and can't be told: eu"},
		{plan.Reason{Code: plan.NoPermittedRegion, Policies: rules}, "no region is inside every boundary: eu, licence"},
	} {
		t.Run(string(c.reason.Code), func(t *testing.T) {
			if got := c.reason.String(); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
