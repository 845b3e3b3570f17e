package serve

import "github.com/meridian-mesh/meridian/xds"

// wildcard is the resource name that subscribes to everything of a type.
const wildcard = "*"

// subscription is which resources of one type a client wants. The rules for wildcards are those of the xDS protocol
// ("How the client specifies what resources to return"): a first request without names is a wildcard. In delta it
// stays one until the client unsubscribes from it; in the state of the world, until the client names something.
type subscription struct {
	table *nameTable
	all   bool
	named *names
	// legacy says that all holds because no name was ever given (state of the world).
	legacy bool
}

// wants says whether a resource is subscribed to.
func (s *subscription) wants(r *xds.Resource) bool {
	if s.all || s.named.has(r.Name) {
		return true
	}
	for _, alias := range r.Aliases {
		if s.named.has(alias) {
			return true
		}
	}
	return false
}

// open takes the names of a type's first request.
func (s *subscription) open(asked *names) {
	if asked.len() == 0 {
		s.all, s.legacy = true, true
		return
	}
	s.add(asked)
}

// add subscribes to names. The empty one, by which some clients say that they want nothing any more, is none.
func (s *subscription) add(asked *names) {
	asked = s.table.without(asked, "")
	if asked.has(wildcard) {
		s.all = true
		asked = s.table.without(asked, wildcard)
	}
	s.named = s.table.plus(s.named, asked)
}

// remove unsubscribes from names.
func (s *subscription) remove(dropped *names) {
	if dropped.has(wildcard) {
		s.all = false
	}
	s.named = s.table.minus(s.named, dropped)
}

// replace takes the names of a state-of-the-world request, which are all that the client wants, and returns those that
// were not subscribed to by name before.
func (s *subscription) replace(asked *names) (fresh []string) {
	if s.legacy && asked.len() == 0 || asked != nil && asked == s.named && !s.all {
		return nil
	}
	before := s.named
	s.all, s.legacy, s.named = false, false, nil
	s.add(asked)
	if s.named == before {
		return nil
	}
	for _, n := range s.named.list() {
		if !before.has(n) {
			fresh = append(fresh, n)
		}
	}
	return fresh
}

// of are those of some resources that are subscribed to, in order.
func (s *subscription) of(resources []*xds.Resource) []*xds.Resource {
	if s.all {
		return resources
	}
	var wanted []*xds.Resource
	for _, r := range resources {
		if s.wants(r) {
			wanted = append(wanted, r)
		}
	}
	return wanted
}

// from are the resources of a set that are subscribed to, and the sum of their hashes.
func (s *subscription) from(set *xds.Set) ([]*xds.Resource, uint64) {
	if !s.all {
		chosen := s.named.from(set)
		return chosen.resources, chosen.hash
	}
	resources := make([]*xds.Resource, 0, set.Len())
	var hash uint64
	for r := range set.All() {
		resources = append(resources, r)
		hash += r.Hash()
	}
	return resources, hash
}
