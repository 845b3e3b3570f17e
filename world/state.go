package world

import (
	"net/netip"
	"time"

	"github.com/meridian-mesh/meridian/policies"
)

// Verdict is what is held of an endpoint's health.
type Verdict uint8

// The verdicts, from the zero value on.
const (
	// Unknown: no signal, or none that is fresh. Used only when nothing better is permitted.
	Unknown Verdict = iota
	// Healthy: it answered lately, often enough.
	Healthy
	// Unhealthy: it failed lately, often enough.
	Unhealthy
)

// Health is what is held of an endpoint's health, with the memory that hysteresis needs.
type Health struct {
	Verdict Verdict
	// Since is when Verdict last changed.
	Since time.Time
	// Streak counts the latest equal outcomes in a row: positive for successes, negative for failures.
	Streak int
	// At is the time of the newest outcome; zero when there was none.
	At time.Time
	// Cause says, for people, why it failed last, or that nothing was heard of it; empty once a success leaves it
	// healthy.
	Cause string
}

// Load is what an endpoint said of its load.
type Load struct {
	// Running and Waiting are counts of requests.
	Running, Waiting int
	// KVCacheUse is the used part of the KV cache, 0 to 1.
	KVCacheUse float64
	// At is when it was read; zero when it never was.
	At time.Time
	// Stale says that At is too long ago for the numbers to be used.
	Stale bool
	// Cause says why it could not be read last, for people; empty when it could.
	Cause string
}

// Demand is how many requests of a key are in flight, over all proxies of the viewpoint, smoothed.
type Demand struct {
	// InFlight is in requests at a time.
	InFlight float64
	// RequestsPerSecond is the rate at which new ones begin.
	RequestsPerSecond float64
	// At is the time that the numbers are of: when it was last reported, or was last lowered for want of reports.
	At time.Time
}

// ShareTotal is what the shares of one key sum to.
const ShareTotal = 10_000

// Share is the part of a key's requests that a cluster gets, in ShareTotal parts.
type Share struct {
	Cluster policies.ClusterName
	Parts   uint32
}

// Endpoint is one server and what is known of it.
type Endpoint struct {
	Address netip.AddrPort
	// Condition is what its cluster says of it.
	Condition Condition
	// Zone is where in its region it is, as its cluster says; empty where that says nothing. It never decides residency.
	Zone string
	// Health is what probes say of it. See Verdict for what holds.
	Health Health
	Load   Load
}

// Pool is the endpoints of one service in one cluster. A Pool is immutable; a Commit that changes anything in it
// replaces the pointer, and only then.
type Pool struct {
	Key PoolKey
	// Found says that it is known which endpoints there are: they stand in the policies, or the cluster has listed them.
	Found bool
	// Unprobed says that nobody can probe or scrape the endpoints from here.
	Unprobed bool
	// Endpoints are sorted by address.
	Endpoints []Endpoint
	// Replicas is what the servers hold of accelerators, and how many more of them would fit; nil where that is not known.
	Replicas *PoolReplicas
	// Said is what the servers said of themselves in their responses.
	Said PoolLoad
	// ServedAt is when proxies last reported that the pool served requests well; zero when they never did.
	ServedAt time.Time
}
