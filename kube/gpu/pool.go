package gpu

import (
	"cmp"
	"maps"
	"slices"
)

// pool is a pool of a DRA driver, with what claims hold of it. Claims may be heard of before their pool.
type pool struct {
	slices map[string]*Slice
	taken  map[text]*taking // by device
	view   *view            // of all that; nil after a change
	units  []unit           // of the view
}

// taking is what claims hold of a device.
type taking struct {
	n        int64 // allocations
	consumed []amount
}

func (p *pool) take(a allocation, times int64) {
	t := entry(&p.taken, a.device)
	for _, c := range a.consumes {
		t.consumed = add(t.consumed, c, times)
	}
	if t.n += times; t.n == 0 {
		delete(p.taken, a.device)
	}
}

// view are the devices of a pool and what is left of them.
type view struct {
	devices []*device // by name
	taken   []int64   // allocations of each
	left    [][]int64 // of each capacity of each
	shared  map[counterKey]int64
}

type counterKey struct{ set, name text }

// look gives the view of the pool and its units. The newest generation counts, and only once all of its slices are there: from less, the
// scheduler allocates nothing either.
func (p *pool) look(driver text) (*view, []unit) {
	if p.view == nil {
		p.view = viewOf(p.newest(), p.taken)
		p.units = p.view.units(driver)
	}
	return p.view, p.units
}

func (p *pool) newest() (all []*Slice) {
	var generation int64
	for _, name := range slices.Sorted(maps.Keys(p.slices)) {
		switch s := p.slices[name]; {
		case len(all) == 0 || s.generation > generation:
			all, generation = []*Slice{s}, s.generation
		case s.generation == generation:
			all = append(all, s)
		}
	}
	if len(all) == 0 || int64(len(all)) != all[0].of {
		return nil
	}
	return all
}

func viewOf(all []*Slice, taken map[text]*taking) *view {
	v := &view{shared: map[counterKey]int64{}}
	for _, s := range all {
		for i := range s.devices {
			v.devices = append(v.devices, &s.devices[i])
		}
		for _, c := range s.counters {
			v.shared[counterKey{c.set, c.name}] += c.n
		}
	}
	slices.SortStableFunc(v.devices, func(a, b *device) int { return cmp.Compare(a.name.String(), b.name.String()) })
	v.devices = slices.CompactFunc(v.devices, func(a, b *device) bool { return a.name == b.name })
	v.taken, v.left = make([]int64, len(v.devices)), make([][]int64, len(v.devices))
	for i, d := range v.devices {
		v.left[i] = make([]int64, len(d.capacity))
		for j, c := range d.capacity {
			v.left[i][j] = c.n
		}
		if t := taken[d.name]; t != nil {
			v.claimed(i, t)
		}
	}
	return v
}

// claimed takes away what claims hold of a device.
func (v *view) claimed(i int, t *taking) {
	v.taken[i] = t.n
	for j, c := range v.devices[i].capacity {
		v.left[i][j] -= of(t.consumed, c.of)
	}
	v.count(i, -1)
}

// count gives counters what a device consumes of them, or takes it.
func (v *view) count(i int, times int64) {
	for _, c := range v.devices[i].consumes {
		v.shared[counterKey{c.set, c.name}] += c.n * times
	}
}

func (v *view) clone() *view {
	c := &view{devices: v.devices, taken: slices.Clone(v.taken), left: make([][]int64, len(v.left)), shared: maps.Clone(v.shared)}
	for i := range v.left {
		c.left[i] = slices.Clone(v.left[i])
	}
	return c
}

// selects tells whether a device is what an option asks for, taken or not.
func (o *option) selects(d *device) bool {
	if d.kind != o.kind || o.product != (text{}) && o.product != d.product {
		return false
	}
	return !slices.ContainsFunc(o.capacity, func(a amount) bool {
		return !slices.ContainsFunc(d.capacity, func(c capacity) bool { return c.of == a.of && c.n >= a.n })
	})
}

// wants is how much of a capacity of a shared device an option takes.
func (o *option) wants(c capacity) int64 {
	if slices.ContainsFunc(o.capacity, func(a amount) bool { return a.of == c.of }) {
		return of(o.capacity, c.of)
	}
	return c.byDefault
}

// open tells whether somebody can be given a device, or more of it.
func (v *view) open(i int) bool {
	d := v.devices[i]
	if d.barred || v.taken[i] > 0 && !d.shared {
		return false
	}
	return v.taken[i] > 0 || v.counted(d)
}

// can tells whether a device can be allocated as an option asks.
func (v *view) can(i int, o *option) bool {
	if !v.open(i) {
		return false
	}
	for j, c := range v.devices[i].capacity {
		if v.devices[i].shared && v.left[i][j] < o.wants(c) {
			return false
		}
	}
	return true
}

// counted tells whether counters have what a device consumes.
func (v *view) counted(d *device) bool {
	return !slices.ContainsFunc(d.consumes, func(c counter) bool { return v.shared[counterKey{c.set, c.name}] < c.n })
}

// allocate takes a device as an option asks, or gives it back.
func (v *view) allocate(i int, o *option, times int64) {
	d := v.devices[i]
	before := v.taken[i]
	v.taken[i] += times
	if before == 0 || v.taken[i] == 0 {
		v.count(i, -times)
	}
	for j, c := range d.capacity {
		if d.shared {
			v.left[i][j] -= o.wants(c) * times
		}
	}
}

// unit is a whole device, or the set of counters that parts of one share.
type unit struct {
	product, driver text
	place           place
	usable          bool // some of it is not tainted
	taken           bool // some of it
	room            bool // for somebody more
}

// units are the whole devices of a pool, always in the same order.
func (v *view) units(driver text) (all []unit) {
	sets := map[text]int{}
	for i, d := range v.devices {
		if len(d.consumes) == 0 {
			all = append(all, unit{product: d.product, driver: driver, place: d.place})
			all[len(all)-1].see(v, i)
			continue
		}
		for j, c := range d.consumes {
			at, ok := sets[c.set]
			if !ok {
				at = len(all)
				all, sets[c.set] = append(all, unit{product: d.whole, driver: driver, place: d.place}), at
			}
			if j == 0 || d.consumes[j-1].set != c.set {
				all[at].see(v, i)
			}
		}
	}
	return all
}

// see adds what a device says of the unit that it is, or is a part of.
func (u *unit) see(v *view, i int) {
	d := v.devices[i]
	u.usable = u.usable || !d.barred
	u.taken = u.taken || v.taken[i] > 0
	u.room = u.room || v.open(i) && (!d.shared || !slices.ContainsFunc(v.left[i], func(n int64) bool { return n <= 0 }))
}
