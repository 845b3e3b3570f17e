package gpu

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/meridian-mesh/meridian/world"
)

// Room says how many more replicas of pods would fit. It remembers what it has worked out, and holds good until its Inventory changes.
type Room struct {
	of    *Inventory
	known map[roomKey]int64
}

// roomKey is all that the room for a replica depends on.
type roomKey struct{ shape, claims, queue text }

// Room is the room of now.
func (i *Inventory) Room() *Room { return &Room{of: i, known: map[roomKey]int64{}} }

// More is Fits for replicas of the shape that most of some pods have, those of a service for example, with the devices that the claims made for
// each of them ask for, in the queue that they came through. Names that are not known count for nothing; without any there is no
// shape, and it is 0. What pods share by a claim is there already.
func (r *Room) More(pods ...types.NamespacedName) int64 {
	name, ok := r.of.typical(pods)
	if !ok {
		return 0
	}
	p := r.of.pods[name]
	shape := *p.shape
	var claims []any
	for _, claim := range p.claims {
		c := r.of.claims[types.NamespacedName{Namespace: name.Namespace, Name: claim}]
		shape.devices = slices.Concat(shape.devices, c.asks)
		claims = append(claims, c.key.String())
	}
	queue := r.of.queueOf(name.Namespace, p.queue)
	key := roomKey{shape: shape.key, claims: keyOf(claims...)}
	if queue != nil {
		key.queue = textOf(queue.Name)
	}
	if _, ok := r.known[key]; !ok {
		r.known[key] = r.of.Fits(&shape, queue)
	}
	return r.known[key]
}

// typical is one of the pods that have the shape which most of them have; of shapes that as many have, the first by key.
func (i *Inventory) typical(pods []types.NamespacedName) (name types.NamespacedName, ok bool) {
	like := map[*Shape][]types.NamespacedName{}
	var shapes []*Shape
	for _, name := range pods {
		if p, ok := i.pods[name]; ok {
			if like[p.shape] == nil {
				shapes = append(shapes, p.shape)
			}
			like[p.shape] = append(like[p.shape], name)
		}
	}
	if len(shapes) == 0 {
		return types.NamespacedName{}, false
	}
	most := slices.MinFunc(shapes, func(a, b *Shape) int {
		return cmp.Or(cmp.Compare(len(like[b]), len(like[a])), cmp.Compare(a.key.String(), b.key.String()))
	})
	return slices.MinFunc(like[most], func(a, b types.NamespacedName) int { return cmp.Compare(a.Name, b.Name) }), true
}

// queueOf is the ClusterQueue to which a LocalQueue leads; nil where that is not known.
func (i *Inventory) queueOf(namespace string, local text) *world.Queue {
	leads, ok := i.entries[types.NamespacedName{Namespace: namespace, Name: local.String()}]
	if !ok {
		return nil
	}
	q, ok := i.queues[leads]
	if !ok {
		return nil
	}
	return &q
}
