package serve

import (
	"slices"

	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/meridian-mesh/meridian/xds"
)

// gates says which types must be acknowledged before changes of a type are sent. Endpoints wait for nothing: a dead
// endpoint must leave at once, and Envoy acknowledges clusters only after their endpoints have come. Routes wait for the
// clusters they name. A refusal lets changes through as an acknowledgement does: a route to a cluster that the client
// does not have fails, where an old route might lead out of a boundary that is new.
var gates = map[xds.Type][]xds.Type{
	xds.TypeListener:    {xds.TypeSecret, xds.TypeExtension, xds.TypeCluster},
	xds.TypeScopedRoute: {xds.TypeSecret, xds.TypeCluster, xds.TypeListener},
	xds.TypeRoute:       {xds.TypeSecret, xds.TypeCluster, xds.TypeListener},
	xds.TypeVirtualHost: {xds.TypeSecret, xds.TypeCluster, xds.TypeRoute},
}

// advance brings the client closer to the target: first everything that is new or changed, in the order in which things
// refer to each other, then, once all of that is acknowledged, what is gone, in the opposite order. While anything stands
// refused nothing is removed: the client still works with what it had, and that may refer to it.
func (s *session) advance() []response {
	if s.target == nil {
		return nil
	}
	var out []response
	for _, k := range s.kinds {
		if len(k.outstanding) == 0 && s.open(k.typ) {
			out = append(out, s.make(k)...)
		}
	}
	if len(out) > 0 || s.unsettled() {
		return out
	}
	for _, k := range slices.Backward(s.kinds) {
		if len(k.lingering) > 0 {
			return s.breakOff(k)
		}
	}
	return nil
}

// open says whether nothing is outstanding that a type waits for.
func (s *session) open(t xds.Type) bool {
	waits := gates[t]
	return !slices.ContainsFunc(s.kinds, func(k *kind) bool {
		return len(k.outstanding) > 0 && !k.overdue && slices.Contains(waits, k.typ)
	})
}

// unsettled says whether anything is outstanding or stands refused.
func (s *session) unsettled() bool {
	return slices.ContainsFunc(s.kinds, func(k *kind) bool { return len(k.outstanding) > 0 || k.refusal != "" })
}

// settledOn says whether the client has accepted everything of a snapshot that it asked for.
func (s *session) settledOn(snapshot *xds.Snapshot) bool {
	return s.target == snapshot && !s.unsettled() && !slices.ContainsFunc(s.kinds, func(k *kind) bool {
		return !k.synced || k.sent != snapshot.Of(k.typ)
	})
}

// make sends what is new or changed in a type; what is gone lingers.
func (s *session) make(k *kind) []response {
	if !k.synced {
		return s.bringUp(k)
	}
	now := s.target.Of(k.typ)
	if now == k.sent {
		return nil
	}
	changed, gone := s.diff(k.typ, k.sent, now)
	k.sent = now
	k.settle()
	if s.full && !wholeState(k.typ) {
		gone = nil // absence says nothing for these: the client lets go when what names them is gone
	}
	k.lingering = append(k.lingering, k.sub.of(gone)...)
	if len(k.lingering) > 0 {
		k.lingering = slices.DeleteFunc(k.lingering, func(r *xds.Resource) bool { return now.Find(r.Name) != nil })
	}
	changed = k.sub.of(changed)
	if len(changed) == 0 {
		return nil
	}
	if s.full && wholeState(k.typ) {
		changed = append(slices.Clone(k.wanted().resources), k.lingering...)
	}
	out := s.send(k, changed, nil)
	k.outstanding[len(k.outstanding)-1].since = s.since
	return out
}

// settle ends a refusal of resources that are no more.
func (k *kind) settle() {
	stands := func(r *xds.Resource) bool { return k.sent.Find(r.Name) != nil }
	if len(k.refused) > 0 && !slices.ContainsFunc(k.refused, stands) {
		k.refused, k.refusal = nil, ""
	}
}

// breakOff removes what lingers in a type.
func (s *session) breakOff(k *kind) []response {
	gone := k.lingering
	k.lingering = nil
	if s.full {
		return s.send(k, k.wanted().resources, nil)
	}
	removed := make([]string, len(gone))
	for i, r := range gone {
		removed[i] = r.Name
	}
	return s.send(k, nil, removed)
}

// empties are assignments without endpoints.
func empties(clusters []string) []*xds.Resource {
	var resources []*xds.Resource
	for _, name := range clusters {
		r, err := xds.NewResource(xds.TypeEndpoint, name, &endpoint.ClusterLoadAssignment{ClusterName: name})
		if err == nil { // a name that came over the wire is valid UTF-8, the only thing that can be wrong
			resources = append(resources, r)
		}
	}
	return resources
}
