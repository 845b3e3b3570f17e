package gpu

import (
	"cmp"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/meridian-mesh/meridian/world"
)

// Inventory is what a cluster has, kept up to date one object at a time. Putting in and removing cost what one object costs; putting in
// what is already there replaces it. They say whether that changed anything. The zero value is an empty cluster.
type Inventory struct {
	nodes   map[text]*nodeState
	order   []*nodeState // that are there, by name
	pods    map[types.NamespacedName]Pod
	claims  map[types.NamespacedName]Claim
	slices  map[string]Slice
	pools   map[poolKey]*pool
	queues  map[string]world.Queue
	shapes  map[text]*shaped                // by their keys
	entries map[types.NamespacedName]string // the ClusterQueues that LocalQueues lead to
	asking  map[text]*asking                // by the key of a claim
}

// nodeState is a node with what its pods hold. Pods may be heard of before their node.
type nodeState struct {
	name   text
	node   *Node // nil while it is not there
	used   []amount
	cpu    int64
	memory int64
	pods   int64
}

// shaped are pods of one shape, of which some wait for a node.
type shaped struct {
	shape         *Shape
	pods, waiting int64
}

// asking are claims that wait for the same devices.
type asking struct {
	requests []request
	claims   int64
}

// replace puts a value into a map, or removes it if it is nil; it hands over what was there, and says whether anything changed.
func replace[K comparable, V any](m *map[K]V, key K, value *V) (old V, had, changed bool) {
	old, had = (*m)[key]
	switch {
	case value == nil:
		delete(*m, key)
		return old, had, had
	case had && reflect.DeepEqual(old, *value):
		return old, had, false
	case *m == nil:
		*m = map[K]V{}
	}
	(*m)[key] = *value
	return old, had, true
}

// PutNode takes in a node.
func (i *Inventory) PutNode(name string, n Node) (changed bool) {
	s := i.state(textOf(name))
	if s.node != nil && reflect.DeepEqual(*s.node, n) {
		return false
	}
	if s.node == nil {
		at, _ := i.find(name)
		i.order = slices.Insert(i.order, at, s)
	}
	s.node = &n
	return true
}

// RemoveNode forgets a node.
func (i *Inventory) RemoveNode(name string) (changed bool) {
	at, ok := i.find(name)
	if !ok {
		return false
	}
	i.order[at].node = nil
	i.drop(i.order[at])
	i.order = slices.Delete(i.order, at, at+1)
	return true
}

func (i *Inventory) find(name string) (at int, ok bool) {
	return slices.BinarySearchFunc(i.order, name, func(s *nodeState, name string) int { return cmp.Compare(s.name.String(), name) })
}

func (i *Inventory) state(name text) *nodeState {
	s := i.nodes[name]
	if s == nil {
		if i.nodes == nil {
			i.nodes = map[text]*nodeState{}
		}
		s = &nodeState{name: name}
		i.nodes[name] = s
	}
	return s
}

// drop forgets a node that is not there, once nothing is known of it any more.
func (i *Inventory) drop(s *nodeState) {
	if s.node == nil && s.pods == 0 {
		delete(i.nodes, s.name)
	}
}

// PutPod takes in a pod.
func (i *Inventory) PutPod(name types.NamespacedName, p Pod) (changed bool) { return i.pod(name, &p) }

// RemovePod forgets a pod.
func (i *Inventory) RemovePod(name types.NamespacedName) (changed bool) { return i.pod(name, nil) }

func (i *Inventory) pod(name types.NamespacedName, p *Pod) bool {
	if p != nil {
		if of := i.shapes[p.shape.key]; of != nil {
			p.shape = of.shape
		}
	}
	old, had, changed := replace(&i.pods, name, p)
	if !changed {
		return false
	}
	if had {
		i.hold(&old, -1)
	}
	if p != nil {
		i.hold(p, 1)
	}
	return true
}

// hold adds what a pod holds or waits for, or takes it away.
func (i *Inventory) hold(p *Pod, times int64) {
	of := entry(&i.shapes, p.shape.key)
	of.shape = p.shape
	if of.pods += times; of.pods == 0 {
		delete(i.shapes, p.shape.key)
	}
	switch {
	case p.node != (text{}):
		s := i.state(p.node)
		for _, a := range p.asks {
			s.used = add(s.used, a, times)
		}
		s.cpu, s.memory, s.pods = s.cpu+p.cpu*times, s.memory+p.memory*times, s.pods+times
		i.drop(s)
	case p.waits:
		of.waiting += times
	}
}

// entry finds what a map has at a key, and makes it if there is none.
func entry[K comparable, V any](m *map[K]*V, key K) *V {
	v := (*m)[key]
	if v == nil {
		if *m == nil {
			*m = map[K]*V{}
		}
		v = new(V)
		(*m)[key] = v
	}
	return v
}

// PutSlice takes in a ResourceSlice.
func (i *Inventory) PutSlice(name string, s Slice) (changed bool) { return i.slice(name, &s) }

// RemoveSlice forgets a ResourceSlice.
func (i *Inventory) RemoveSlice(name string) (changed bool) { return i.slice(name, nil) }

func (i *Inventory) slice(name string, s *Slice) bool {
	old, had, changed := replace(&i.slices, name, s)
	if !changed {
		return false
	}
	if had {
		p := i.pools[old.pool]
		delete(p.slices, name)
		i.touch(old.pool)
	}
	if s != nil {
		p := entry(&i.pools, s.pool)
		if p.slices == nil {
			p.slices = map[string]*Slice{}
		}
		p.slices[name] = s
		i.touch(s.pool)
	}
	return true
}

// touch has a pool looked at again, and forgets it once nothing is known of it any more.
func (i *Inventory) touch(key poolKey) {
	p := i.pools[key]
	if p.view = nil; len(p.slices) == 0 && len(p.taken) == 0 {
		delete(i.pools, key)
	}
}

// PutClaim takes in a ResourceClaim.
func (i *Inventory) PutClaim(name types.NamespacedName, c Claim) (changed bool) {
	return i.claim(name, &c)
}

// RemoveClaim forgets a ResourceClaim.
func (i *Inventory) RemoveClaim(name types.NamespacedName) (changed bool) { return i.claim(name, nil) }

func (i *Inventory) claim(name types.NamespacedName, c *Claim) bool {
	old, had, changed := replace(&i.claims, name, c)
	if !changed {
		return false
	}
	if had {
		i.take(&old, -1)
	}
	if c != nil {
		i.take(c, 1)
	}
	return true
}

// take adds what a claim holds or waits for, or takes it away.
func (i *Inventory) take(c *Claim, times int64) {
	for _, a := range c.takes {
		entry(&i.pools, a.pool).take(a, times)
		i.touch(a.pool)
	}
	if c.waits {
		w := entry(&i.asking, c.key)
		w.requests = c.asks
		if w.claims += times; w.claims == 0 {
			delete(i.asking, c.key)
		}
	}
}

// PutQueue takes in a ClusterQueue.
func (i *Inventory) PutQueue(q world.Queue) (changed bool) {
	_, _, changed = replace(&i.queues, q.Name, &q)
	return changed
}

// RemoveQueue forgets a ClusterQueue.
func (i *Inventory) RemoveQueue(name string) (changed bool) {
	_, _, changed = replace(&i.queues, name, nil)
	return changed
}

// PutLocalQueue says to which ClusterQueue a LocalQueue leads.
func (i *Inventory) PutLocalQueue(name types.NamespacedName, leads string) (changed bool) {
	_, _, changed = replace(&i.entries, name, &leads)
	return changed
}

// RemoveLocalQueue forgets a LocalQueue.
func (i *Inventory) RemoveLocalQueue(name types.NamespacedName) (changed bool) {
	_, _, changed = replace(&i.entries, name, nil)
	return changed
}
