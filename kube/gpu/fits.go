package gpu

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/meridian-mesh/meridian/world"
)

// Fits is how many more replicas of a shape would find a node now, after all pods that wait already. Each must fit on one node.
// The quotas of a queue bound it; nil where pods are not queued. A shape that asks for no accelerator gives 0.
func (i *Inventory) Fits(s *Shape, q *world.Queue) int64 {
	if s.nothing() {
		return 0
	}
	room := int64(most)
	if q != nil {
		room = admits(q, s)
	}
	b := i.board(len(s.devices) > 0)
	b.settle()
	return b.put(s, room)
}

// Holds sums what pods hold that are bound to nodes, those of a service for example. Names that are not known hold nothing, and a claim that
// several of the pods share counts once. A partition of a DRA driver's device counts as one of its own product.
func (i *Inventory) Holds(pods ...types.NamespacedName) []world.Holding {
	held := map[world.Holding]int64{}
	seen := map[types.NamespacedName]bool{}
	for _, name := range pods {
		p, ok := i.pods[name]
		if !ok || p.node == (text{}) || seen[name] {
			continue
		}
		seen[name] = true
		i.holds(&p, held)
		for _, claim := range p.claims {
			key := types.NamespacedName{Namespace: name.Namespace, Name: "claim/" + claim} // no pod has such a name
			if !seen[key] {
				seen[key] = true
				i.claimed(types.NamespacedName{Namespace: name.Namespace, Name: claim}, held)
			}
		}
	}
	var all []world.Holding
	for h, n := range held {
		h.Devices = n
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b world.Holding) int {
		return cmp.Or(cmp.Compare(a.Product, b.Product), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Shares, b.Shares))
	})
	return all
}

// holds adds the devices of a pod's node that it holds.
func (i *Inventory) holds(p *Pod, held map[world.Holding]int64) {
	for _, a := range p.asks {
		h := world.Holding{Product: a.of.String(), Class: world.Unclassed, Resource: a.of.String(), Shares: 1}
		if s := i.nodes[p.node]; s != nil && s.node != nil {
			h.Class = s.node.class
			if j := s.node.device(a.of); j >= 0 {
				h.Product, h.Shares = s.node.devices[j].product.String(), s.node.devices[j].shares
			}
		}
		held[h] += a.n
	}
}

// claimed adds the devices that a claim holds.
func (i *Inventory) claimed(name types.NamespacedName, held map[world.Holding]int64) {
	for _, a := range i.claims[name].takes {
		h := world.Holding{Product: a.pool.driver.String(), Class: world.Unclassed, Resource: a.pool.driver.String(), Shares: 1}
		v, _ := i.pools[a.pool].look(a.pool.driver)
		for _, d := range v.devices {
			if d.name == a.device {
				h.Product = d.product.String()
				h.Class, _ = i.classAt(d.place)
			}
		}
		held[h]++
	}
}
