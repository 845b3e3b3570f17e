package plan

import (
	"time"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Plan is every decision for every viewpoint that the world knows. It is immutable.
type Plan struct {
	// Admission says which class a request has.
	Admission *Admission
	// Decisions are sorted by viewpoint, then service, then class.
	Decisions []*Decision
	// NextAt is when the same world would be planned otherwise because time has passed (shares still moving);
	// zero when it is settled.
	NextAt time.Time
}

// Decision is where one service's requests of one class go from one viewpoint. Compute gives the same pointer again
// where nothing in it changed.
type Decision struct {
	Viewpoint world.ViewpointID
	Service   policies.ServiceName
	Class     world.ClassID
	// Choices are all clusters that have a pool of the service: first those that serve, by share, then those that
	// stand by, in order of failover, then those refused, by name.
	Choices []Choice
}

// Role is what a cluster is to a decision.
type Role uint8

// The roles of a cluster in a decision.
const (
	// Refused: no request of this decision may reach the cluster.
	Refused Role = iota
	// Serving: the cluster gets Share of the requests.
	Serving
	// Standby: the cluster gets requests when those before it fail or are full.
	Standby
)

// Choice is one cluster that was considered and what became of it.
type Choice struct {
	Cluster policies.ClusterName
	Region  policies.RegionName
	Role    Role
	// Priority is 0 for all that serve, then counts up without gaps; meaningless where refused.
	Priority uint32
	// Share is in world.ShareTotal parts; those of all serving choices sum to it.
	Share uint32
	// Healthy says whether the pool has an endpoint that may be used now: a choice that has none keeps its place,
	// and Envoy passes over it.
	Healthy bool
	// RTT is the round trip from the viewpoint's region, measured or estimated.
	RTT time.Duration
	// Reasons say why, most decisive first: at least one.
	Reasons []Reason
}
