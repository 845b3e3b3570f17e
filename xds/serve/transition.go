package serve

import (
	"slices"
	"strings"

	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/meridian-mesh/meridian/xds"
)

// gates says which types must be acknowledged before changes of a type are sent. Endpoints wait for nothing: a dead
// endpoint must leave at once, and Envoy acknowledges clusters only after their endpoints have come. Routes wait for the
// clusters they name. A refusal lets changes through as an acknowledgement does: a route to a cluster that the client
// does not have fails, where an old route might lead out of a boundary that is new.
var gates = map[xds.Type][]xds.Type{
	xds.TypeListener: {xds.TypeSecret, xds.TypeCluster},
	xds.TypeRoute:    {xds.TypeSecret, xds.TypeCluster, xds.TypeListener},
}

// advance brings the client closer to the target: first everything that is new or changed, in the order in which things
// refer to each other, then, once all of that is acknowledged, what is gone, in the opposite order. While anything stands
// refused nothing is removed: the client still works with what it had, and that may refer to it.
func (s *session) advance() []response {
	if s.target == nil {
		return nil
	}
	var out []response
	for _, t := range xds.Types() {
		if k := s.kinds[t]; k != nil && len(k.outstanding) == 0 && s.open(t) {
			out = append(out, s.make(k)...)
		}
	}
	if len(out) > 0 || s.unsettled() {
		return out
	}
	for _, t := range slices.Backward(xds.Types()) {
		if k := s.kinds[t]; k != nil && len(k.lingering) > 0 {
			return s.breakOff(k)
		}
	}
	return nil
}

// open says whether nothing is outstanding that a type waits for.
func (s *session) open(t xds.Type) bool {
	return !slices.ContainsFunc(gates[t], func(g xds.Type) bool {
		k := s.kinds[g]
		return k != nil && len(k.outstanding) > 0 && !k.overdue
	})
}

// unsettled says whether anything is outstanding or stands refused.
func (s *session) unsettled() bool {
	for _, k := range s.kinds {
		if len(k.outstanding) > 0 || k.refusal != "" {
			return true
		}
	}
	return false
}

// make sends what is new or changed in a type; what is gone lingers.
func (s *session) make(k *kind) []response {
	if !k.synced {
		return s.bringUp(k)
	}
	now := slices.Collect(s.target.Of(k.typ).All())
	changed, gone := diff(k.sent, now)
	k.take(s.target)
	k.settle(now)
	if s.full && !wholeState(k.typ) {
		gone = nil // absence says nothing for these: the client lets go when what names them is gone
	}
	k.lingering = slices.DeleteFunc(append(k.lingering, k.sub.of(gone)...), func(r *xds.Resource) bool { return find(now, r.Name) != nil })
	changed = k.sub.of(changed)
	if len(changed) == 0 {
		return nil
	}
	if s.full && wholeState(k.typ) {
		changed = append(slices.Clone(k.sub.of(now)), k.lingering...)
	}
	return s.send(k, changed, nil)
}

// settle ends a refusal of resources that are no more.
func (k *kind) settle(now []*xds.Resource) {
	stands := func(r *xds.Resource) bool { return find(now, r.Name) != nil }
	if len(k.refused) > 0 && !slices.ContainsFunc(k.refused, stands) {
		k.refused, k.refusal = nil, ""
	}
}

// breakOff removes what lingers in a type.
func (s *session) breakOff(k *kind) []response {
	gone := k.lingering
	k.lingering = nil
	if s.full {
		return s.send(k, k.sub.of(k.sent), nil)
	}
	names := make([]string, len(gone))
	for i, r := range gone {
		names[i] = r.Name
	}
	return s.send(k, nil, names)
}

// diff walks two lists sorted by name. changed are those of after that are new or have another version, gone those of
// before that are no more. An equal pointer is an equal resource, so what did not change costs one comparison.
func diff(before, after []*xds.Resource) (changed, gone []*xds.Resource) {
	i := 0
	for _, r := range after {
		for i < len(before) && before[i].Name < r.Name {
			gone = append(gone, before[i])
			i++
		}
		if i < len(before) && before[i].Name == r.Name {
			if before[i] != r && before[i].Version != r.Version {
				changed = append(changed, r)
			}
			i++
			continue
		}
		changed = append(changed, r)
	}
	return changed, append(gone, before[i:]...)
}

// find searches a list sorted by name.
func find(resources []*xds.Resource, name string) *xds.Resource {
	i, ok := slices.BinarySearchFunc(resources, name, func(r *xds.Resource, n string) int { return strings.Compare(r.Name, n) })
	if !ok {
		return nil
	}
	return resources[i]
}

// missing are the names that a list sorted by name does not have, sorted.
func missing(resources []*xds.Resource, names []string) []string {
	var absent []string
	for _, n := range names {
		if n != wildcard && find(resources, n) == nil {
			absent = append(absent, n)
		}
	}
	slices.Sort(absent)
	return absent
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
