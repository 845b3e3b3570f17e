package serve

import (
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/meridian-mesh/meridian/xds"
)

// names is an immutable set of resource names. Clients of one viewpoint mostly ask for the same, so the streams that ask for
// the same names share one: what a client asks for costs it a pointer. nil is no names.
type names struct {
	sorted []string
	key    nameKey

	// selected is the newest selection from resources by these names, for the next stream that asks.
	selected atomic.Pointer[selection]
}

// selection are the resources of a set that some names ask for.
type selection struct {
	from      *xds.Set
	resources []*xds.Resource
	hash      uint64 // the sum of the resources' hashes
}

// nameKey is the sum of the names' hashes under two secret seeds, so that adding a name is adding a number.
type nameKey [2]uint64

func (k nameKey) plus(o nameKey) nameKey { return nameKey{k[0] + o[0], k[1] + o[1]} }

func (n *names) len() int {
	if n == nil {
		return 0
	}
	return len(n.sorted)
}

// list are the names, sorted. It must not be changed.
func (n *names) list() []string {
	if n == nil {
		return nil
	}
	return n.sorted
}

func (n *names) has(name string) bool {
	_, ok := slices.BinarySearch(n.list(), name)
	return ok
}

// from are the resources of a set with these names, each once, in the order of the names.
func (n *names) from(set *xds.Set) *selection {
	if n == nil {
		return &selection{from: set}
	}
	if s := n.selected.Load(); s != nil && s.from == set {
		return s
	}
	s := &selection{from: set}
	for _, name := range n.sorted {
		if r := set.Find(name); r != nil && !s.has(r) {
			s.resources = append(s.resources, r)
			s.hash += r.Hash()
		}
	}
	n.selected.Store(s)
	return s
}

// has says whether a resource that other names found is among the last few: aliases of one resource mostly sort together, and
// one that comes twice does no harm.
func (s *selection) has(r *xds.Resource) bool {
	return len(r.Aliases) > 0 && slices.Contains(s.resources[max(0, len(s.resources)-len(r.Aliases)-1):], r)
}

// nameTable finds the set of names that is in use already. It may be used from any goroutine.
type nameTable struct {
	seeds [2]maphash.Seed // set once

	mu    sync.Mutex
	known map[nameKey]weak.Pointer[names] // under mu
}

func newNameTable() *nameTable {
	return &nameTable{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, known: map[nameKey]weak.Pointer[names]{}}
}

func (t *nameTable) keyOf(name []byte) nameKey {
	return nameKey{maphash.Bytes(t.seeds[0], name), maphash.Bytes(t.seeds[1], name)}
}

// find is the set with a key; nil where it is not in use.
func (t *nameTable) find(key nameKey) *names {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[key].Value()
}

// of is the set of the names in a list.
func (t *nameTable) of(list ...string) *names {
	if len(list) == 0 {
		return nil
	}
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	return t.keep(slices.Compact(sorted))
}

// keep is the set of sorted names, of which it takes ownership.
func (t *nameTable) keep(sorted []string) *names {
	if len(sorted) == 0 {
		return nil
	}
	n := &names{sorted: sorted}
	for _, name := range sorted {
		n.key = n.key.plus(nameKey{maphash.String(t.seeds[0], name), maphash.String(t.seeds[1], name)})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.known[n.key].Value(); known != nil {
		return known
	}
	t.known[n.key] = weak.Make(n)
	runtime.AddCleanup(n, t.forget, n.key)
	return n
}

// forget drops a key whose set is no longer in use, unless it has come into use again.
func (t *nameTable) forget(key nameKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[key].Value() == nil {
		delete(t.known, key)
	}
}

// plus is the set of the names in either.
func (t *nameTable) plus(a, b *names) *names {
	switch {
	case a == nil || a == b:
		return b
	case b == nil:
		return a
	}
	sorted := slices.Concat(a.sorted, b.sorted)
	slices.Sort(sorted)
	return t.keep(slices.Compact(sorted))
}

// minus is the set of the names in a and not in b.
func (t *nameTable) minus(a, b *names) *names {
	switch {
	case a == nil || a == b:
		return nil
	case b == nil:
		return a
	}
	return t.keep(slices.DeleteFunc(slices.Clone(a.sorted), b.has))
}

// without is the set without a name.
func (t *nameTable) without(n *names, name string) *names {
	i, found := slices.BinarySearch(n.list(), name)
	if !found {
		return n
	}
	return t.keep(slices.Delete(slices.Clone(n.sorted), i, i+1))
}

// missing are the names that a set has no resource for, sorted.
func missing(set *xds.Set, of []string) []string {
	var absent []string
	for _, n := range of {
		if n != wildcard && set.Find(n) == nil {
			absent = append(absent, n)
		}
	}
	return absent
}
