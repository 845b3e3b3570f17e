package gpu

import (
	"cmp"
	"maps"
	"slices"

	"github.com/meridian-mesh/meridian/world"
)

// board is what is free in a cluster, to put replicas on.
type board struct {
	of    *Inventory
	spots []spot            // in the order of the nodes
	views map[poolKey]*view // none where nobody asks for devices of DRA drivers
	local map[text][]*view  // by node
	wide  []*view           // of devices that several nodes can use
}

// spot is what is free on a node.
type spot struct {
	free              []int64 // of each of the node's devices
	cpu, memory, pods int64
}

// board lays out what is free: with all DRA devices where some wait for them, or the caller asks for them.
func (i *Inventory) board(devices bool) *board {
	b := &board{of: i, spots: make([]spot, len(i.order))}
	total := 0
	for _, s := range i.order {
		total += len(s.node.devices)
	}
	free := make([]int64, 0, total)
	for k, s := range i.order {
		from := len(free)
		for _, d := range s.node.devices {
			free = append(free, d.n-s.usedOf(&d))
		}
		b.spots[k] = spot{free[from:], max(s.node.cpu-s.cpu, 0), max(s.node.memory-s.memory, 0), max(s.node.pods-s.pods, 0)}
	}
	if devices || len(i.asking) > 0 {
		b.lay()
	}
	return b
}

// usedOf is how much of a node's devices its pods hold. Where devices failed, pods may hold more than there are.
func (s *nodeState) usedOf(d *nodeDevice) int64 { return min(of(s.used, d.resource), d.n) }

// lay lays out the pools.
func (b *board) lay() {
	b.views, b.local = map[poolKey]*view{}, map[text][]*view{}
	for _, key := range slices.SortedFunc(maps.Keys(b.of.pools), poolKey.compare) {
		laid, _ := b.of.pools[key].look(key.driver)
		v := laid.clone()
		b.views[key] = v
		wide := false
		for _, d := range v.devices {
			if at := b.local[d.place.node]; d.place.node != (text{}) && (len(at) == 0 || at[len(at)-1] != v) {
				b.local[d.place.node] = append(at, v)
			}
			wide = wide || d.place.all || d.place.nodes != nil
		}
		if wide {
			b.wide = append(b.wide, v)
		}
	}
}

func (k poolKey) compare(other poolKey) int {
	return cmp.Or(cmp.Compare(k.driver.String(), other.driver.String()), cmp.Compare(k.name.String(), other.name.String()))
}

// settle puts all that wait where they may run, the largest first, and hands over what found no place.
func (b *board) settle() (left []world.AcceleratorDemand) {
	for _, w := range slices.SortedFunc(maps.Values(b.of.shapes), larger) {
		if rest := w.waiting - b.put(w.shape, w.waiting); rest > 0 {
			for _, a := range w.shape.asks {
				left = append(left, world.AcceleratorDemand{Resource: a.of.String(), Pods: rest, Devices: rest * a.n})
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(b.of.asking), func(a, c text) int { return cmp.Compare(a.String(), c.String()) }) {
		w := b.of.asking[key]
		if rest := w.claims - b.claim(w.requests, w.claims); rest > 0 {
			for _, r := range w.requests {
				left = append(left, world.AcceleratorDemand{Resource: r[0].kind.String(), Pods: rest, Devices: rest * r[0].count})
			}
		}
	}
	return merge(left)
}

// larger compares waiting pods by how many devices each asks for.
func larger(a, b *shaped) int {
	sum := func(w *shaped) (n int64) {
		for _, ask := range w.shape.asks {
			n += ask.n
		}
		return n
	}
	return cmp.Or(cmp.Compare(sum(b), sum(a)), cmp.Compare(a.shape.key.String(), b.shape.key.String()))
}

// put puts up to so many replicas on the nodes, and says how many found a place.
func (b *board) put(s *Shape, replicas int64) (placed int64) {
	for k, n := range b.of.order {
		if placed == replicas {
			break
		}
		if !s.may(n.name.String(), n.node) {
			continue
		}
		fit := b.devices(k, s.devices, min(replicas-placed, b.spots[k].room(n.node, s)))
		b.spots[k].take(n.node, s, fit)
		placed += fit
	}
	return placed
}

// claim allocates devices to up to so many claims of pods that are not looked at: on any node that counts.
func (b *board) claim(requests []request, claims int64) (placed int64) {
	for k, n := range b.of.order {
		if !n.node.barred {
			placed += b.devices(k, requests, claims-placed)
		}
	}
	return placed
}

// room is how many replicas fit by what the node itself has.
func (s *spot) room(n *Node, shape *Shape) int64 {
	room := s.pods
	if shape.cpu > 0 {
		room = min(room, s.cpu/shape.cpu)
	}
	if shape.memory > 0 {
		room = min(room, s.memory/shape.memory)
	}
	for _, a := range shape.asks {
		i := n.device(a.of)
		if i < 0 {
			return 0
		}
		room = min(room, s.free[i]/a.n)
	}
	return room
}

func (n *Node) device(resource text) int {
	return slices.IndexFunc(n.devices, func(d nodeDevice) bool { return d.resource == resource })
}

func (s *spot) take(n *Node, shape *Shape, replicas int64) {
	s.pods, s.cpu, s.memory = s.pods-replicas, s.cpu-shape.cpu*replicas, s.memory-shape.memory*replicas
	for _, a := range shape.asks {
		if i := n.device(a.of); i >= 0 {
			s.free[i] -= a.n * replicas
		}
	}
}

// devices allocates devices of DRA drivers on a node to up to so many replicas, and says to how many.
func (b *board) devices(k int, requests []request, replicas int64) (placed int64) {
	if len(requests) == 0 {
		return replicas
	}
	for placed < replicas && b.replica(k, requests) {
		placed++
	}
	return placed
}

// taken is a device that was allocated as an option asks.
type taken struct {
	view   *view
	device int
	option *option
}

// replica allocates all that one replica asks for, or nothing. The first option that can be had is taken; nothing is tried over again.
func (b *board) replica(k int, requests []request) bool {
	var all []taken
	for _, r := range requests {
		had := slices.ContainsFunc(r, func(o option) bool {
			some, ok := b.option(k, &o)
			all = append(all, some...)
			return ok
		})
		if !had {
			release(all)
			return false
		}
	}
	return true
}

func release(all []taken) {
	for _, t := range all {
		t.view.allocate(t.device, t.option, -1)
	}
}

// option allocates the devices of an option on a node: all or none of them.
func (b *board) option(k int, o *option) (all []taken, ok bool) {
	n := b.of.order[k]
	selected := int64(0)
	for _, views := range [][]*view{b.local[n.name], b.wide} {
		for _, v := range views {
			for i, d := range v.devices {
				if int64(len(all)) == o.count && !o.all {
					return all, true
				}
				if !o.selects(d) || !d.place.here(n.name, n.node) {
					continue
				}
				if selected++; v.can(i, o) {
					v.allocate(i, o, 1)
					all = append(all, taken{v, i, o})
				}
			}
		}
	}
	if o.all && selected > 0 && int64(len(all)) == selected || !o.all && int64(len(all)) == o.count {
		return all, true
	}
	release(all)
	return nil, false
}
