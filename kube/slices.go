package kube

import (
	"maps"
	"slices"

	"github.com/meridian-mesh/meridian/world"
)

// named tells one object of a kind apart from the others.
type named struct{ namespace, name string }

// sliceSet are the EndpointSlices of a cluster. Its owner locks it.
type sliceSet struct {
	listed  bool // all that there are have been taken in
	byName  map[named]*slice
	byOwner map[object]map[named]*slice
}

// put takes in a new or changed slice, or drops it where it is nil, and returns whose endpoints changed.
func (s *sliceSet) put(name named, now *slice) (touched []object) {
	if s.byName == nil {
		s.byName, s.byOwner = map[named]*slice{}, map[object]map[named]*slice{}
	}
	before := s.byName[name]
	if before != nil {
		touched = append(touched, before.owner)
		delete(s.byName, name)
		delete(s.byOwner[before.owner], name)
		if len(s.byOwner[before.owner]) == 0 {
			delete(s.byOwner, before.owner)
		}
	}
	if now == nil {
		return touched
	}
	s.byName[name] = now
	if s.byOwner[now.owner] == nil {
		s.byOwner[now.owner] = map[named]*slice{}
	}
	s.byOwner[now.owner][name] = now
	if before == nil || before.owner != now.owner {
		touched = append(touched, now.owner)
	}
	return touched
}

// endpoints are those of an object at a port.
func (s *sliceSet) endpoints(of object, port string) []world.FoundEndpoint {
	return endpointsIn(slices.Collect(maps.Values(s.byOwner[of])), port)
}
