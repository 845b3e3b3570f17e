package gpu

import (
	"cmp"
	"maps"
	"slices"
)

// Capacity is what a cluster has of accelerators. All lists are sorted.
type Capacity struct {
	Rows []Row `json:"rows,omitempty"`
	// Waiting is what pods and claims wait for that is free nowhere where they may run.
	Waiting []Demand `json:"waiting,omitempty"`
	Queues  []Queue  `json:"queues,omitempty"`
}

// Row is what there is of one product in one class. Its unit is a device as a pod asks for it, or a whole device of a DRA driver.
// Total is the sum of Used, Pending and Free; none is ever negative.
type Row struct {
	Product string `json:"product"`
	Class   Class  `json:"class"`
	// Resource is the extended resource, or the DRA driver.
	Resource string `json:"resource"`
	// Shares is how many units are one device: above 1 where it is shared by time-slicing or MPS.
	Shares int64 `json:"shares"`
	Total  int64 `json:"total"`
	Used   int64 `json:"used"`
	// Pending is what will go to pods that wait for a node.
	Pending int64 `json:"pending"`
	Free    int64 `json:"free"`
	// Partly counts those of Used and Pending that have room for more: partitions that can still be made, or shares.
	Partly int64 `json:"partly"`
	// Barred are on nodes that don't count, or are tainted; BarredUsed counts those of them that are held. They are not in Total.
	Barred     int64 `json:"barred"`
	BarredUsed int64 `json:"barredUsed"`
}

// Demand is what pods or claims wait for.
type Demand struct {
	// Resource is the extended resource, or the kind of a DRA driver's devices as in DeviceClass.
	Resource string `json:"resource"`
	// Pods are those that wait, or their claims.
	Pods int64 `json:"pods"`
	// Devices is what they ask for together.
	Devices int64 `json:"devices"`
}

// rowKey is what makes a row one of its own.
type rowKey struct {
	product, resource text
	class             Class
	shares            int64
}

// Count sums up the cluster. It is not safe beside other calls: what it works out of pools is kept until they change.
func (i *Inventory) Count() Capacity {
	b := i.board(false)
	rows := rows{}
	c := Capacity{Waiting: b.settle(), Queues: i.sortedQueues()}
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

func (i *Inventory) sortedQueues() []Queue {
	return slices.SortedFunc(maps.Values(i.queues), func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
}

type rows map[rowKey]*Row

func (r rows) row(key rowKey) *Row {
	row := r[key]
	if row == nil {
		row = &Row{Product: key.product.String(), Class: key.class, Resource: key.resource.String(), Shares: key.shares}
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
func (i *Inventory) classAt(p place) (class Class, counts bool) {
	if p.node != (text{}) {
		if s := i.nodes[p.node]; s != nil && s.node != nil {
			return s.node.class, !s.node.barred
		}
		return Unknown, false
	}
	for _, s := range i.order {
		if !s.node.barred && p.here(s.name, s.node) {
			return s.node.class, true
		}
	}
	return Unknown, false
}

func (r rows) sorted() (all []Row) {
	for _, row := range r {
		all = append(all, *row)
	}
	slices.SortFunc(all, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Product, b.Product), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Shares, b.Shares))
	})
	return all
}

// merge sorts demands and adds up those for the same.
func merge(all []Demand) (merged []Demand) {
	slices.SortFunc(all, func(a, b Demand) int { return cmp.Compare(a.Resource, b.Resource) })
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
