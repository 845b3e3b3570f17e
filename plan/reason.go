package plan

import (
	"time"

	"github.com/meridian-mesh/meridian/policies"
)

// Code says why, in one word that is stable: it is in headers, metrics and logs.
type Code string

// The codes of reasons. The list is closed; docs/reference/reasons.md is generated from it.
const (
	// Nearest: the permitted, healthy cluster with headroom that is nearest to the viewpoint.
	Nearest Code = "nearest"
	// Spill: nearer clusters have no headroom left for this part of the demand.
	Spill Code = "spill"
	// Growing: takes demand that no cluster has room for, as there are free accelerators for more replicas.
	Growing Code = "growing"
	// Failover: stands by for when those before it fail or are full.
	Failover Code = "failover"
	// Preferred: the Traffic policy names the region before nearer ones.
	Preferred Code = "preferred"
	// Moving: on its way to or from another share; movement between healthy clusters is bounded.
	Moving Code = "moving"
	// Unhealthy: no endpoint of the pool answers.
	Unhealthy Code = "unhealthy"
	// UnknownHealth: nothing fresh is known of the pool; used only when nothing better is permitted.
	UnknownHealth Code = "unknown_health"
	// Full: the pool has no headroom.
	Full Code = "full"
	// Draining: the cluster is being emptied.
	Draining Code = "draining"
	// OutsideBoundary: a residency rule forbids the cluster's region.
	OutsideBoundary Code = "outside_boundary"
	// OutsideFailover: the Traffic policy limits failover to other regions.
	OutsideFailover Code = "outside_failover"
	// Unreachable: the viewpoint's gateway has no identity to reach the cluster's gateways with.
	Unreachable Code = "unreachable"
	// UnknownLocation: a rule needs the client's country, and it can't be told.
	UnknownLocation Code = "unknown_location"
	// NoPermittedRegion: the boundaries that bind the request have no region in common.
	NoPermittedRegion Code = "no_permitted_region"
)

// Reason is why a cluster was chosen, ordered or refused: a code and its operands, no text. Only the operands that the
// code needs are set.
type Reason struct {
	Code Code `json:"code"`
	// Policies are the rules that decided, sorted.
	Policies []policies.ResidencyName `json:"policies,omitempty"`
	// Cluster is the other cluster in the comparison, such as the one that is full. With Unhealthy, UnknownHealth or
	// Draining it is the nearest one permitted, in whose place the choice serves; without, they are about the choice.
	Cluster policies.ClusterName `json:"cluster,omitempty"`
	// RTT is the round trip that was compared.
	RTT time.Duration `json:"rtt,omitempty"`
	// Healthy of Total endpoints are up.
	Healthy int `json:"healthy,omitempty"`
	Total   int `json:"total,omitempty"`
	// Free of Slots requests could still be taken. Reasons hold no numbers that change with every measurement, so Free
	// is 0 here: Full and Spill say how many slots there are, and that all that may be planned for are.
	Free  int `json:"free,omitempty"`
	Slots int `json:"slots,omitempty"`
}
