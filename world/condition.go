package world

// Condition is what an endpoint's own cluster says of it, in the terms of Kubernetes' EndpointSlices.
type Condition uint8

// The conditions, from the zero value on.
const (
	// Unsaid: the cluster says nothing, or was last heard too long ago for its word to count. Probes decide.
	Unsaid Condition = iota
	// Ready: it takes requests.
	Ready
	// Unready: it takes none, or not yet.
	Unready
	// Terminating: it is about to end, and still serves. It gets new requests only where there is nothing better; those under
	// way may end.
	Terminating
)

// Verdict is what holds of the endpoint, of all that is known: what is not ready is not used whatever probes say, what is about
// to end is Unknown at best, and an endpoint that nobody can probe is taken at its cluster's word.
func (e *Endpoint) Verdict(unprobed bool) Verdict {
	switch {
	case e.Condition == Unready:
		return Unhealthy
	case e.Condition == Terminating && (unprobed || e.Health.Verdict == Healthy):
		return Unknown
	case !unprobed:
		return e.Health.Verdict
	case e.Condition == Ready:
		return Healthy
	}
	return Unknown
}

// VerdictOf is what holds of one of the pool's endpoints.
func (p *Pool) VerdictOf(e *Endpoint) Verdict { return e.Verdict(p.Unprobed) }
