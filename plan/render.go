package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/meridian-mesh/meridian/policies"
)

// String says a reason in words, about the cluster whose choice it is in: "is the nearest that can serve, 12 ms away". It
// is for people; programs read the fields.
func (r Reason) String() string {
	switch r.Code {
	case Nearest:
		return "is the nearest that can serve, " + away(r.RTT)
	case Spill:
		return fmt.Sprintf("takes what %s has no room for (%d slots), %s", r.Cluster, r.Slots, away(r.RTT))
	case Growing:
		return "takes what has no room anywhere, as more replicas would fit there, " + away(r.RTT)
	case Failover:
		return "stands by for failover, " + away(r.RTT)
	case Preferred:
		return "is in a region that the Traffic policy prefers, " + away(r.RTT)
	case Moving:
		return "is on its way to another share"
	case Full:
		return fmt.Sprintf("has no room left (%d slots)", r.Slots)
	case NoPermittedRegion:
		return "no region is inside every boundary: " + join(r.Policies)
	case UnknownLocation:
		return "the client's country is needed and can't be told: " + join(r.Policies)
	case OutsideBoundary:
		return "is outside the boundary of " + join(r.Policies)
	case OutsideFailover:
		return "is in a region that the Traffic policy does not fail over to"
	case Unreachable:
		return "is behind gateways, and the proxies here have no east-west identity"
	}
	return r.condition()
}

// condition says the state of a pool: the cluster's own, or that of a nearer one which was passed over.
func (r Reason) condition() string {
	subject := ""
	if r.Cluster != "" {
		subject = fmt.Sprintf("stands in for %s, which is nearer but ", r.Cluster)
	}
	switch r.Code {
	case Unhealthy:
		return fmt.Sprintf("%shas no healthy endpoint (%d of %d)", subject, r.Healthy, r.Total)
	case UnknownHealth:
		return fmt.Sprintf("%shas endpoints of which nothing fresh is known (%d of %d healthy)", subject, r.Healthy, r.Total)
	case Draining:
		return subject + "is being drained"
	}
	return string(r.Code)
}

// away is a round trip in words.
func away(rtt time.Duration) string {
	return fmt.Sprintf("%g ms away", float64(rtt.Round(10*time.Microsecond))/float64(time.Millisecond))
}

func join(names []policies.ResidencyName) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(n))
	}
	return b.String()
}

// String is the role's word in output: "serving", "standby" or "refused".
func (r Role) String() string {
	switch r {
	case Serving:
		return "serving"
	case Standby:
		return "standby"
	}
	return "refused"
}

// MarshalText writes the role's word.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
