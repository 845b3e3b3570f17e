package cache

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// Published is a snapshot and when the oldest change in it came in. It is immutable.
type Published struct {
	Snapshot *xds.Snapshot
	Since    time.Time
	// Stale says that the snapshot is from before this control plane started, and that nothing is known yet that is newer.
	Stale bool
}

// Cache keeps the newest snapshot of each viewpoint. The zero value is ready.
type Cache struct {
	mu      sync.Mutex
	entries map[world.ViewpointID]*entry // under mu
}

// entry is one viewpoint: its newest snapshot, and its watches.
type entry struct {
	newest atomic.Pointer[Published]

	mu      sync.Mutex
	watches map[*Watch]struct{} // under mu
}

// Watch is someone who is told of publications for a viewpoint.
type Watch struct {
	entry *entry
	tell  func()
}

func (c *Cache) entry(v world.ViewpointID) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[world.ViewpointID]*entry{}
	}
	e, ok := c.entries[v]
	if !ok {
		e = &entry{watches: map[*Watch]struct{}{}}
		c.entries[v] = e
	}
	return e
}

// Publish replaces a viewpoint's snapshot and tells its watches, one after the other.
func (c *Cache) Publish(s *xds.Snapshot, since time.Time) {
	c.publish(&Published{Snapshot: s, Since: since})
}

// Restore publishes what was in force before the control plane started, unless something newer is there already.
func (c *Cache) Restore(s *xds.Snapshot, at time.Time) {
	if c.Newest(s.Viewpoint) == nil {
		c.publish(&Published{Snapshot: s, Since: at, Stale: true})
	}
}

func (c *Cache) publish(p *Published) {
	e := c.entry(p.Snapshot.Viewpoint)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.newest.Store(p)
	for w := range e.watches {
		w.tell()
	}
}

// Newest is a viewpoint's snapshot; nil before the first.
func (c *Cache) Newest(v world.ViewpointID) *Published { return c.entry(v).newest.Load() }

// Watch begins to watch a viewpoint: tell is called after each publication. It must not block, nor use the cache but to ask
// for what is newest. The caller must Close the watch.
func (c *Cache) Watch(v world.ViewpointID, tell func()) *Watch {
	w := &Watch{entry: c.entry(v), tell: tell}
	w.entry.mu.Lock()
	defer w.entry.mu.Unlock()
	w.entry.watches[w] = struct{}{}
	return w
}

// Close ends the watch. It may be called more than once.
func (w *Watch) Close() {
	w.entry.mu.Lock()
	defer w.entry.mu.Unlock()
	delete(w.entry.watches, w)
}
