package serve

import (
	"sync"

	"github.com/meridian-mesh/meridian/xds"
)

// changes remembers what the newest change of each type was, for all streams of a viewpoint: mostly all of them go from the
// same set to the same set, and the first to do so compares for the rest.
type changes struct {
	mu     sync.Mutex
	newest map[xds.Type]change // under mu
}

// change is what xds.Diff says of two sets.
type change struct {
	before, after *xds.Set
	changed, gone []*xds.Resource
}

func (c *changes) diff(t xds.Type, before, after *xds.Set) (changed, gone []*xds.Resource) {
	c.mu.Lock()
	known := c.newest[t]
	c.mu.Unlock()
	if known.before == before && known.after == after {
		return known.changed, known.gone
	}
	changed, gone = xds.Diff(before, after)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newest == nil {
		c.newest = map[xds.Type]change{}
	}
	c.newest[t] = change{before, after, changed, gone}
	return changed, gone
}
