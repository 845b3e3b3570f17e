package world

import (
	"net/netip"
	"time"

	"github.com/meridian-mesh/meridian/policies"
)

// Fact is something that a Commit folds into the world. The closed list of facts is in this file.
type Fact interface{ fact() }

// PoliciesLoaded replaces the policy set in force.
type PoliciesLoaded struct{ Set *policies.Set }

// ViewpointSeen says that a proxy with this viewpoint has connected.
type ViewpointSeen struct{ Viewpoint Viewpoint }

// PoolFound replaces the endpoints of a pool that is read from its cluster. What is known of those that stay is kept. Facts
// about other pools, whose endpoints stand in the policies, are dropped.
type PoolFound struct {
	Pool PoolKey
	// Endpoints hold each address once, in any order.
	Endpoints []FoundEndpoint
}

// FoundEndpoint is an endpoint as its cluster lists it.
type FoundEndpoint struct {
	Address   netip.AddrPort
	Condition Condition
	Zone      string
}

// AcceleratorsCounted replaces what is known of a cluster's accelerators, and of what its pools hold of them.
type AcceleratorsCounted struct {
	Cluster policies.ClusterName
	// Accelerators is nil where nothing is known any more.
	Accelerators *Accelerators
	// Pools are those of the cluster of which it is known what they hold; of its others that is then not known.
	Pools []PoolReplicas
}

// EndpointJudged replaces what is known of an endpoint's health.
type EndpointJudged struct {
	Endpoint EndpointKey
	Health   Health
}

// EndpointMeasured replaces what is known of an endpoint's load.
type EndpointMeasured struct {
	Endpoint EndpointKey
	Load     Load
}

// PoolServed says that proxies reported requests which the pool served well.
type PoolServed struct {
	Pool PoolKey
	At   time.Time
}

// PoolSaid replaces what a pool's servers said of themselves in responses, unless something newer is known.
type PoolSaid struct {
	Pool PoolKey
	Load PoolLoad
}

// DemandSeen replaces the part of a key's demand that went to one cluster; a Demand of 0 forgets it.
type DemandSeen struct {
	Key DemandKey
	// Cluster is where the requests went; empty where the source cannot tell.
	Cluster policies.ClusterName
	Demand  Demand
}

// RoundTripMeasured replaces the measured round trip between two regions, in both directions, unless a newer one is
// known.
type RoundTripMeasured struct {
	From, To policies.RegionName
	RTT      time.Duration
	At       time.Time
}

// SharesPublished says which shares were published for a key, so that the next plan can bound how far it moves.
type SharesPublished struct {
	Key    DemandKey
	Shares []Share
	At     time.Time
}

// TimeAdvanced moves the world's clock, so that what is only a matter of time (staleness, bounded movement) is planned.
type TimeAdvanced struct{ Now time.Time }

func (PoliciesLoaded) fact()      {}
func (ViewpointSeen) fact()       {}
func (PoolFound) fact()           {}
func (AcceleratorsCounted) fact() {}
func (EndpointJudged) fact()      {}
func (EndpointMeasured) fact()    {}
func (PoolServed) fact()          {}
func (PoolSaid) fact()            {}
func (DemandSeen) fact()          {}
func (RoundTripMeasured) fact()   {}
func (SharesPublished) fact()     {}
func (TimeAdvanced) fact()        {}
