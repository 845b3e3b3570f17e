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

	versions map[Type]string // by type, of all its resources; set once
}

// Version identifies the snapshot's resources of one type: equal content has an equal version on every replica.
func (s *Snapshot) Version(t Type) string { return s.versions[t] }

// Of are the snapshot's resources of one type, sorted by name. The slice must not be changed.
func (s *Snapshot) Of(t Type) []*Resource {
	rank := slices.Index(Types(), t)
	lo, _ := slices.BinarySearchFunc(s.Resources, rank, func(r *Resource, rank int) int {
		return cmp.Compare(slices.Index(Types(), r.Type), rank)
	})
	hi, _ := slices.BinarySearchFunc(s.Resources, rank+1, func(r *Resource, rank int) int {
		return cmp.Compare(slices.Index(Types(), r.Type), rank)
	})
	return s.Resources[lo:hi:hi]
}

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
		order[t] = i
	}
	slices.SortFunc(resources, func(a, b *Resource) int {
		return cmp.Or(cmp.Compare(order[a.Type], order[b.Type]), cmp.Compare(a.Name, b.Name))
	})
	s := &Snapshot{Viewpoint: viewpoint, Resources: resources, versions: make(map[Type]string, len(order))}
	for _, t := range Types() {
		s.versions[t] = versionOf(s.Of(t))
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
