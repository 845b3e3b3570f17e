package xds

import (
	"iter"
	"maps"
	"slices"

	"github.com/meridian-mesh/meridian/world"
)

// Snapshot is everything that the proxies of one viewpoint hold. Snapshots share the resources that are equal in them:
// an unchanged resource is the same pointer from one snapshot to the next, and an unchanged Set too.
type Snapshot struct {
	Viewpoint world.ViewpointID

	sets map[Type]*Set // set once
}

// NewSnapshot sorts resources into a snapshot. It takes ownership of the slice.
func NewSnapshot(viewpoint world.ViewpointID, resources []*Resource) *Snapshot {
	byType := map[Type][]*Resource{}
	for _, r := range resources {
		byType[r.Type] = append(byType[r.Type], r)
	}
	s := &Snapshot{Viewpoint: viewpoint, sets: make(map[Type]*Set, len(byType))}
	for t, of := range byType {
		s.sets[t] = NewSet(of)
	}
	return s
}

// Of is the snapshot's resources of one type.
func (s *Snapshot) Of(t Type) *Set {
	if s == nil {
		return nil
	}
	return s.sets[t]
}

// Version identifies the snapshot's resources of one type: equal content has an equal version on every replica.
func (s *Snapshot) Version(t Type) string { return s.Of(t).Version() }

// Resource finds a resource by type and name; nil where there is none.
func (s *Snapshot) Resource(t Type, name string) *Resource { return s.Of(t).Find(name) }

// Types are the types of which the snapshot has resources, in order.
func (s *Snapshot) Types() []Type { return slices.SortedFunc(maps.Keys(s.sets), Type.Compare) }

// All are the resources, sorted by type, in the order of Types, then name.
func (s *Snapshot) All() iter.Seq[*Resource] {
	return func(yield func(*Resource) bool) {
		for _, t := range s.Types() {
			for r := range s.Of(t).All() {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// Len counts the resources.
func (s *Snapshot) Len() int {
	n := 0
	for _, set := range s.sets {
		n += set.Len()
	}
	return n
}

// With is the snapshot with resources put in, each in the place of one with its type and name, and others taken out. It
// shares everything that is not touched.
func (s *Snapshot) With(put, remove []*Resource) *Snapshot {
	edits := map[Type]*edit{}
	of := func(t Type) *edit {
		if edits[t] == nil {
			edits[t] = &edit{}
		}
		return edits[t]
	}
	for _, r := range put {
		of(r.Type).put = append(of(r.Type).put, r)
	}
	for _, r := range remove {
		of(r.Type).remove = append(of(r.Type).remove, r.Name)
	}
	next := &Snapshot{Viewpoint: s.Viewpoint, sets: maps.Clone(s.sets)}
	for t, e := range edits {
		next.sets[t] = s.sets[t].With(e.put, e.remove)
	}
	return next
}

// edit is what With does to one type.
type edit struct {
	put    []*Resource
	remove []string
}

// WithSet is the snapshot with other resources of one type.
func (s *Snapshot) WithSet(t Type, set *Set) *Snapshot {
	next := &Snapshot{Viewpoint: s.Viewpoint, sets: maps.Clone(s.sets)}
	next.sets[t] = set
	return next
}

// For is the snapshot for another viewpoint.
func (s *Snapshot) For(viewpoint world.ViewpointID) *Snapshot {
	return &Snapshot{Viewpoint: viewpoint, sets: s.sets}
}
