package xds

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Set is the resources of one type, sorted by name. It is immutable: With makes another, which shares what is equal, so that
// a change costs the chunk that it is in. nil is a set without resources.
type Set struct {
	chunks  []chunk // none is empty
	len     int
	sum     uint64 // of the resources' hashes
	version string // where it is not made of sum
	aliases map[string]*Resource
	mortal  int // resources with a TTL
}

// chunk is a run of resources, sorted by name. Sets share chunks.
type chunk []*Resource

// chunkSize is how many resources a new chunk has; one that grows to twice as many is split.
const chunkSize = 64

// NewSet sorts resources of one type into a set. It takes ownership of the slice.
func NewSet(resources []*Resource) *Set {
	if !slices.IsSortedFunc(resources, byName) {
		slices.SortStableFunc(resources, byName)
	}
	s := &Set{}
	for c := range slices.Chunk(resources, chunkSize) {
		s.chunks = append(s.chunks, chunk(c))
	}
	for _, r := range resources {
		s.count(r, 1)
	}
	s.index()
	return s
}

func byName(a, b *Resource) int { return strings.Compare(a.Name, b.Name) }

// count takes a resource in (1) or out (-1).
func (s *Set) count(r *Resource, sign int) {
	s.len += sign
	s.sum += uint64(sign) * r.hash
	if r.TTL > 0 {
		s.mortal += sign
	}
}

// index gathers aliases.
func (s *Set) index() {
	s.aliases = nil
	for r := range s.All() {
		for _, alias := range r.Aliases {
			if s.aliases == nil {
				s.aliases = map[string]*Resource{}
			}
			s.aliases[alias] = r
		}
	}
}

// Len counts the resources.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return s.len
}

// Mortal says whether any of the resources has a TTL.
func (s *Set) Mortal() bool { return s != nil && s.mortal > 0 }

// Version identifies the content: equal content has an equal version on every replica.
func (s *Set) Version() string {
	switch {
	case s == nil:
		return fmt.Sprintf("%016x", 0)
	case s.version != "":
		return s.version
	}
	return fmt.Sprintf("%016x", s.sum)
}

// All are the resources in order.
func (s *Set) All() iter.Seq[*Resource] {
	return func(yield func(*Resource) bool) {
		if s == nil {
			return
		}
		for _, c := range s.chunks {
			for _, r := range c {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// Find is the resource with a name or alias; nil where there is none.
func (s *Set) Find(name string) *Resource {
	if s == nil {
		return nil
	}
	if i := s.chunkOf(name); i < len(s.chunks) {
		if j, ok := slices.BinarySearchFunc(s.chunks[i], name, func(r *Resource, n string) int { return strings.Compare(r.Name, n) }); ok {
			return s.chunks[i][j]
		}
	}
	return s.aliases[name]
}

// chunkOf is the chunk in which a name is or would be; 0 where there are none.
func (s *Set) chunkOf(name string) int {
	i, ok := slices.BinarySearchFunc(s.chunks, name, func(c chunk, n string) int { return strings.Compare(c[0].Name, n) })
	if ok || i == 0 {
		return i
	}
	return i - 1
}

// With is the set with resources put in, each in the place of one with its name, and names taken out.
func (s *Set) With(put []*Resource, remove []string) *Set {
	edits := make(map[string]*Resource, len(put)+len(remove))
	for _, name := range remove {
		edits[name] = nil
	}
	for _, r := range put {
		edits[r.Name] = r
	}
	next := &Set{}
	if s != nil {
		*next = Set{chunks: slices.Clone(s.chunks), len: s.len, sum: s.sum, aliases: s.aliases, mortal: s.mortal}
	}
	reindex := false
	for _, name := range sortedNames(edits) {
		before := next.edit(name, edits[name])
		reindex = reindex || hasAliases(before) || hasAliases(edits[name])
	}
	if reindex {
		next.index()
	}
	return next
}

func sortedNames(edits map[string]*Resource) []string {
	names := make([]string, 0, len(edits))
	for name := range edits {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func hasAliases(r *Resource) bool { return r != nil && len(r.Aliases) > 0 }

// edit puts a resource in, or takes the one with the name out, and returns the one that was there. Only With calls it, on a
// set that nobody else knows: chunks are copied, for they are shared.
func (s *Set) edit(name string, r *Resource) (before *Resource) {
	if len(s.chunks) == 0 {
		if r != nil {
			s.chunks = []chunk{{r}}
			s.count(r, 1)
		}
		return nil
	}
	i := s.chunkOf(name)
	c := s.chunks[i]
	j, found := slices.BinarySearchFunc(c, name, func(r *Resource, n string) int { return cmp.Compare(r.Name, n) })
	if found {
		before = c[j]
		s.count(before, -1)
	}
	switch {
	case r != nil && found:
		c = slices.Clone(c)
		c[j] = r
	case r != nil:
		c = slices.Insert(slices.Clone(c), j, r)
	case found:
		c = slices.Delete(slices.Clone(c), j, j+1)
	}
	if r != nil {
		s.count(r, 1)
	}
	s.replace(i, c)
	return before
}

// replace puts a chunk back, split where it has grown, left out where it is empty.
func (s *Set) replace(i int, c chunk) {
	switch {
	case len(c) == 0:
		s.chunks = slices.Delete(s.chunks, i, i+1)
	case len(c) >= 2*chunkSize:
		s.chunks[i] = slices.Clip(c[:chunkSize])
		s.chunks = slices.Insert(s.chunks, i+1, c[chunkSize:])
	default:
		s.chunks[i] = c
	}
}

// WithVersion is the set under a version that someone else gave it.
func (s *Set) WithVersion(version string) *Set {
	next := &Set{}
	if s != nil {
		*next = *s
	}
	next.version = version
	return next
}

// Diff compares two sets. changed are the resources of after that are new or have another version, gone those of before that
// are no more, both in order. Chunks that both share are passed over.
func Diff(before, after *Set) (changed, gone []*Resource) {
	if before == after {
		return nil, nil
	}
	b, a := cursor{set: before}, cursor{set: after}
	for {
		for b.sharesChunk(&a) {
			b.skip()
			a.skip()
		}
		old, now := b.resource(), a.resource()
		switch {
		case old == nil && now == nil:
			return changed, gone
		case now == nil || old != nil && old.Name < now.Name:
			gone = append(gone, old)
			b.next()
		case old == nil || now.Name < old.Name:
			changed = append(changed, now)
			a.next()
		default:
			if old != now && old.Version != now.Version {
				changed = append(changed, now)
			}
			b.next()
			a.next()
		}
	}
}

// cursor is a place in a set.
type cursor struct {
	set          *Set
	chunk, index int
}

func (c *cursor) resource() *Resource {
	if c.set == nil || c.chunk >= len(c.set.chunks) {
		return nil
	}
	return c.set.chunks[c.chunk][c.index]
}

func (c *cursor) next() {
	if c.index++; c.index == len(c.set.chunks[c.chunk]) {
		c.skip()
	}
}

func (c *cursor) skip() { c.chunk, c.index = c.chunk+1, 0 }

// sharesChunk says whether both are at the beginning of the same chunk.
func (c *cursor) sharesChunk(o *cursor) bool {
	r, other := c.resource(), o.resource()
	if r == nil || r != other || c.index != 0 || o.index != 0 {
		return false
	}
	mine, theirs := c.set.chunks[c.chunk], o.set.chunks[o.chunk]
	return len(mine) == len(theirs) && &mine[0] == &theirs[0]
}
