package xds

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/meridian-mesh/meridian/world"
)

// Snapshot is everything that the proxies of one viewpoint hold. Snapshots share the resources that are equal in them:
// an unchanged resource is the same pointer from one snapshot to the next.
type Snapshot struct {
	Viewpoint world.ViewpointID
	// Resources are sorted by type, in the order of Types, then name.
	Resources []*Resource

	kinds map[Type]ofType // set once
}

// ofType is what a snapshot has of one type.
type ofType struct {
	resources []*Resource // part of Snapshot.Resources
	version   string      // of all of them
}

// Version identifies the snapshot's resources of one type: equal content has an equal version on every replica.
func (s *Snapshot) Version(t Type) string { return s.kinds[t].version }

// Of are the snapshot's resources of one type, sorted by name. The slice must not be changed.
func (s *Snapshot) Of(t Type) []*Resource { return s.kinds[t].resources }

// Resource finds a resource by type and name; nil where there is none.
func (s *Snapshot) Resource(t Type, name string) *Resource {
	of := s.Of(t)
	i, ok := slices.BinarySearchFunc(of, name, func(r *Resource, n string) int { return cmp.Compare(r.Name, n) })
	if !ok {
		return nil
	}
	return of[i]
}

// NewSnapshot sorts resources into a snapshot. It takes ownership of the slice.
func NewSnapshot(viewpoint world.ViewpointID, resources []*Resource) *Snapshot {
	order := make(map[Type]int, len(Types()))
	for i, t := range Types() {
		order[t] = i - len(Types()) // below 0, so that a type that is not served comes last
	}
	slices.SortFunc(resources, func(a, b *Resource) int {
		return cmp.Or(cmp.Compare(order[a.Type], order[b.Type]), cmp.Compare(a.Name, b.Name))
	})
	s := &Snapshot{Viewpoint: viewpoint, Resources: resources, kinds: make(map[Type]ofType, len(order))}
	rest := resources
	for _, t := range Types() {
		n := 0
		for n < len(rest) && rest[n].Type == t {
			n++
		}
		s.kinds[t] = ofType{rest[:n:n], versionOf(rest[:n])}
		rest = rest[n:]
	}
	return s
}

// versionOf hashes names and versions.
func versionOf(resources []*Resource) string {
	h := sha256.New()
	for _, r := range resources {
		h.Write([]byte(r.Name))
		h.Write([]byte{0})
		h.Write([]byte(r.Version))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
