package gpu

import (
	"cmp"
	"maps"
	"slices"

	"github.com/meridian-mesh/meridian/world"
)

// rowKey is what makes a row one of its own.
type rowKey struct {
	product, resource text
	class             world.CapacityClass
	shares            int64
}

// Count sums up the cluster. It is not safe beside other calls: what it works out of pools is kept until they change.
func (i *Inventory) Count() world.Accelerators {
	b := i.board(false)
	rows := rows{}
	c := world.Accelerators{Waiting: b.settle(), Queues: i.sortedQueues()}
	for k, s := range i.order {
		for j := range s.node.devices {
			rows.node(s, j, b.spots[k].free[j])
		}
	}
	for key, p := range i.pools {
		_, now := p.look(key.driver)
		then := now
		if v := b.views[key]; v != nil {
			then = v.units(key.driver)
		}
		rows.pool(i, now, then)
	}
	c.Rows = rows.sorted()
	return c
}

func (i *Inventory) sortedQueues() []world.Queue {
	return slices.SortedFunc(maps.Values(i.queues), func(a, b world.Queue) int { return cmp.Compare(a.Name, b.Name) })
}

type rows map[rowKey]*world.Accelerator

func (r rows) row(key rowKey) *world.Accelerator {
	row := r[key]
	if row == nil {
		row = &world.Accelerator{Product: key.product.String(), Class: key.class, Resource: key.resource.String(), Shares: key.shares}
		r[key] = row
	}
	return row
}

// node adds devices of a node, of which some are free once all that wait have been settled.
func (r rows) node(s *nodeState, j int, free int64) {
	d := &s.node.devices[j]
	row := r.row(rowKey{d.product, d.resource, s.node.class, d.shares})
	used := s.usedOf(d)
	if s.node.barred {
		row.Barred += d.n
		row.BarredUsed += used
		return
	}
	row.Total += d.n
	row.Used += used
	row.Free += free
	row.Pending += d.n - used - free
}

// pool adds the devices of a pool, as they are and as they are once all that wait have been settled.
func (r rows) pool(i *Inventory, now, then []unit) {
	for k, u := range now {
		class, counts := i.classAt(u.place)
		row := r.row(rowKey{u.product, u.driver, class, 1})
		switch {
		case !counts || !u.usable:
			row.Barred++
			row.BarredUsed += one(u.taken)
			continue
		case u.taken:
			row.Used++
		case then[k].taken:
			row.Pending++
		default:
			row.Free++
		}
		row.Total++
		row.Partly += one(then[k].taken && then[k].room)
	}
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// classAt is the class of the nodes that can use what is at a place, and whether one of them counts: of several, the first that does.
func (i *Inventory) classAt(p place) (class world.CapacityClass, counts bool) {
	if p.node != (text{}) {
		if s := i.nodes[p.node]; s != nil && s.node != nil {
			return s.node.class, !s.node.barred
		}
		return world.Unclassed, false
	}
	for _, s := range i.order {
		if !s.node.barred && p.here(s.name, s.node) {
			return s.node.class, true
		}
	}
	return world.Unclassed, false
}

func (r rows) sorted() (all []world.Accelerator) {
	for _, row := range r {
		all = append(all, *row)
	}
	slices.SortFunc(all, func(a, b world.Accelerator) int {
		return cmp.Or(cmp.Compare(a.Product, b.Product), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Shares, b.Shares))
	})
	return all
}

// merge sorts demands and adds up those for the same.
func merge(all []world.AcceleratorDemand) (merged []world.AcceleratorDemand) {
	slices.SortFunc(all, func(a, b world.AcceleratorDemand) int { return cmp.Compare(a.Resource, b.Resource) })
	for _, d := range all {
		if last := len(merged) - 1; last >= 0 && merged[last].Resource == d.Resource {
			merged[last].Pods += d.Pods
			merged[last].Devices += d.Devices
			continue
		}
		merged = append(merged, d)
	}
	return merged
}
