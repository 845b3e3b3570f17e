package cache

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// Published is a snapshot and when the oldest change in it came in.
type Published struct {
	Snapshot *xds.Snapshot
	Since    time.Time
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

// Watch is one reader's view of a viewpoint.
type Watch struct {
	entry *entry
	poke  chan struct{}
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

// Publish replaces a viewpoint's snapshot and pokes its watches. It never blocks on a reader.
func (c *Cache) Publish(s *xds.Snapshot, since time.Time) {
	e := c.entry(s.Viewpoint)
	e.newest.Store(&Published{s, since})
	e.mu.Lock()
	defer e.mu.Unlock()
	for w := range e.watches {
		select {
		case w.poke <- struct{}{}:
		default: // it has a poke waiting, and will find this snapshot
		}
	}
}

// Newest is a viewpoint's snapshot; nil before the first.
func (c *Cache) Newest(v world.ViewpointID) *Published { return c.entry(v).newest.Load() }

// Watch begins to watch a viewpoint. The caller must Close it.
func (c *Cache) Watch(v world.ViewpointID) *Watch {
	w := &Watch{entry: c.entry(v), poke: make(chan struct{}, 1)}
	w.entry.mu.Lock()
	defer w.entry.mu.Unlock()
	w.entry.watches[w] = struct{}{}
	return w
}

// Changed receives when there may be a newer snapshot.
func (w *Watch) Changed() <-chan struct{} { return w.poke }

// Newest is the viewpoint's snapshot; nil before the first.
func (w *Watch) Newest() *Published { return w.entry.newest.Load() }

// Close ends the watch. It may be called more than once.
func (w *Watch) Close() {
	w.entry.mu.Lock()
	defer w.entry.mu.Unlock()
	delete(w.entry.watches, w)
}
