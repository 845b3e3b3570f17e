package mmdb

import (
	"fmt"
	"net/netip"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/meridian-mesh/meridian/geo"
)

// cache has the places of the networks that were asked for last. It takes a plain mutex around the library's LRU: every
// read also writes (what is used moves to the front), so the read-write lock of the library's own safe cache would only
// cost.
type cache struct {
	mu  sync.Mutex
	lru *simplelru.LRU[netip.Prefix, *geo.Place] // under mu
}

func newCache(size int) (*cache, error) {
	lru, err := simplelru.NewLRU[netip.Prefix, *geo.Place](size, nil)
	if err != nil {
		return nil, fmt.Errorf("making a cache of %d networks: %w", size, err)
	}
	return &cache{lru: lru}, nil
}

func (c *cache) get(network netip.Prefix) (*geo.Place, bool) {
	c.mu.Lock()
	place, ok := c.lru.Get(network)
	c.mu.Unlock()
	return place, ok
}

func (c *cache) add(network netip.Prefix, place geo.Place) {
	c.mu.Lock()
	c.lru.Add(network, &place)
	c.mu.Unlock()
}

func (c *cache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lru.Len()
}
