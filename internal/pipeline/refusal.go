package pipeline

import (
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// Refusal is a snapshot that a viewpoint's proxies would not take.
type Refusal struct {
	// Good is the snapshot that they have instead. Required.
	Good *xds.Snapshot
	// Tried is the one that they refused. Required.
	Tried *xds.Snapshot
	// Refused are the resources that they refused, where they told which.
	Refused []*xds.Resource
	// Proxy refused it, for this Reason, at this time.
	Proxy, Reason string
	At            time.Time
}

// Refuse says that a viewpoint's proxies refused a snapshot. Until the world no longer leads to what they refused, they keep
// the structure of the last good one, listeners, routes and clusters, while endpoints go on to follow the world: a proxy that
// does not understand a new route must still not send requests to a dead server. Verify checks the mixture like any other
// snapshot.
func (p *Pipeline) Refuse(v world.ViewpointID, r Refusal) {
	p.inbox.put(time.Now(), func(b *batch) {
		if b.refusals == nil {
			b.refusals = map[world.ViewpointID]Refusal{}
		}
		b.refusals[v] = r
	})
}

// noteRefusals takes refusals in; any says that there were some, so that their viewpoints are to be published anew.
func (p *Pipeline) noteRefusals(refusals map[world.ViewpointID]Refusal) (any bool) {
	for v, r := range refusals {
		p.refusals[v] = r
		delete(p.tried, v)
	}
	return len(refusals) > 0
}

// mend is the snapshot without what the viewpoint's proxies have refused.
func (p *Pipeline) mend(s *xds.Snapshot) *xds.Snapshot {
	r, ok := p.refusals[s.Viewpoint]
	if !ok {
		return s
	}
	standing := r.standing(s)
	switch {
	case len(standing) > 0 && !slices.ContainsFunc(standing, isStructure):
		return r.withGood(s, standing)
	case len(standing) > 0 || len(r.Refused) == 0 && sameStructure(r.Tried, s):
		return r.withEndpoints(s)
	}
	delete(p.refusals, s.Viewpoint) // the world has moved on from it
	return s
}

func isStructure(r *xds.Resource) bool { return r.Type != xds.TypeEndpoint }

// standing are the refused resources that a snapshot still has.
func (r Refusal) standing(s *xds.Snapshot) []*xds.Resource {
	var all []*xds.Resource
	for _, bad := range r.Refused {
		if now := s.Resource(bad.Type, bad.Name); now != nil && now.Version == bad.Version {
			all = append(all, bad)
		}
	}
	return all
}

// withGood is a snapshot with the last good versions of some resources; those that had none are left out.
func (r Refusal) withGood(s *xds.Snapshot, bad []*xds.Resource) *xds.Snapshot {
	var put, remove []*xds.Resource
	for _, b := range bad {
		if good := r.Good.Resource(b.Type, b.Name); good != nil {
			put = append(put, good)
		} else {
			remove = append(remove, b)
		}
	}
	return s.With(put, remove)
}

// withEndpoints is the last good snapshot with the endpoints of now, for the clusters that it has.
func (r Refusal) withEndpoints(s *xds.Snapshot) *xds.Snapshot {
	var put []*xds.Resource
	for good := range r.Good.Of(xds.TypeEndpoint).All() {
		if now := s.Resource(xds.TypeEndpoint, good.Name); now != nil && now.Version != good.Version {
			put = append(put, now)
		}
	}
	return r.Good.With(put, nil)
}

// sameStructure says whether two snapshots differ in endpoints at most.
func sameStructure(a, b *xds.Snapshot) bool {
	return !slices.ContainsFunc(xds.Types(), func(t xds.Type) bool { return t != xds.TypeEndpoint && a.Version(t) != b.Version(t) })
}

// sameContent says whether two snapshots have the same resources; nil has none.
func sameContent(a, b *xds.Snapshot) bool {
	return a != nil && sameStructure(a, b) && a.Version(xds.TypeEndpoint) == b.Version(xds.TypeEndpoint)
}
