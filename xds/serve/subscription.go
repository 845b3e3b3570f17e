package serve

import "github.com/meridian-mesh/meridian/xds"

// wildcard is the resource name that subscribes to everything of a type.
const wildcard = "*"

// subscription is which resources of one type a client wants. The rules for wildcards are those of the xDS protocol
// ("How the client specifies what resources to return"): a first request without names is a wildcard. In delta it
// stays one until the client unsubscribes from it; in the state of the world, until the client names something.
type subscription struct {
	all   bool
	named map[string]struct{}
	// legacy says that all holds because no name was ever given (state of the world).
	legacy bool
}

// wants says whether a resource is subscribed to.
func (s *subscription) wants(name string) bool {
	if s.all {
		return true
	}
	_, ok := s.named[name]
	return ok
}

// open takes the names of a type's first request.
func (s *subscription) open(names []string) {
	s.named = map[string]struct{}{}
	if len(names) == 0 {
		s.all, s.legacy = true, true
		return
	}
	s.add(names)
}

// add subscribes to names.
func (s *subscription) add(names []string) {
	for _, n := range names {
		if n == wildcard {
			s.all = true
			continue
		}
		s.named[n] = struct{}{}
	}
}

// remove unsubscribes from names.
func (s *subscription) remove(names []string) {
	for _, n := range names {
		if n == wildcard {
			s.all = false
			continue
		}
		delete(s.named, n)
	}
}

// replace takes the names of a state-of-the-world request, which are all that the client wants, and returns those that
// were not subscribed to by name before.
func (s *subscription) replace(names []string) (fresh []string) {
	if s.legacy && len(names) == 0 {
		return nil
	}
	before := s.named
	s.all, s.legacy, s.named = false, false, make(map[string]struct{}, len(names))
	for _, n := range names {
		if n == wildcard {
			s.all = true
			continue
		}
		if _, had := before[n]; !had {
			fresh = append(fresh, n)
		}
		s.named[n] = struct{}{}
	}
	return fresh
}

// of are the resources that are subscribed to, in order.
func (s *subscription) of(resources []*xds.Resource) []*xds.Resource {
	if s.all {
		return resources
	}
	var wanted []*xds.Resource
	for _, r := range resources {
		if s.wants(r.Name) {
			wanted = append(wanted, r)
		}
	}
	return wanted
}
