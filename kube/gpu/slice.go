package gpu

import (
	"cmp"
	"slices"
	"strings"

	resource "k8s.io/api/resource/v1"
)

// Slice is what is kept of a ResourceSlice of an accelerator's driver.
type Slice struct {
	pool       poolKey
	generation int64
	of         int64 // slices of the pool's generation
	devices    []device
	counters   []counter // that devices share
}

// poolKey names a pool.
type poolKey struct{ driver, name text }

// device is a device of a DRA driver, or a part of one.
type device struct {
	name, kind text
	product    text // with the profile of a partition
	whole      text // the product that it is, or is a part of
	place      place
	barred     bool // by a taint
	shared     bool // may be allocated many times
	capacity   []capacity
	consumes   []counter
}

// place is where a device can be used: on a node, on those that a selector matches, or on all.
type place struct {
	node  text
	nodes *selector
	all   bool
}

// capacity is what a device has of something. Of a shared one, who doesn't say how much is given byDefault.
type capacity struct {
	amount
	byDefault int64
}

// counter is how much of a counter in a set of counters there is, or is consumed.
type counter struct {
	set, name text
	n         int64
}

// SliceOf keeps what counts of a ResourceSlice; ok is false for drivers of other things than accelerators.
func SliceOf(r *resource.ResourceSlice, s Settings) (kept Slice, ok bool) {
	if !s.drives(r.Spec.Driver) {
		return Slice{}, false
	}
	p := r.Spec.Pool
	kept = Slice{pool: poolKey{textOf(r.Spec.Driver), textOf(p.Name)}, generation: p.Generation, of: p.ResourceSliceCount}
	for i := range r.Spec.Devices {
		d := deviceOf(&r.Spec.Devices[i], r.Spec.Driver)
		if d.place = placeOf(&r.Spec, &r.Spec.Devices[i]); d.kind != (text{}) {
			kept.devices = append(kept.devices, d)
		}
	}
	for _, set := range r.Spec.SharedCounters {
		kept.counters = append(kept.counters, countersOf(set.Name, set.Counters)...)
	}
	return kept, true
}

func deviceOf(d *resource.Device, driver string) device {
	whole := strings.ReplaceAll(cmp.Or(attribute(d, driver, "productName"), attribute(d, driver, "model"), driver), " ", "-")
	kept := device{
		name: textOf(d.Name), kind: textOf(kindOf(d, driver)), product: textOf(whole), whole: textOf(whole),
		shared: isTrue(d.AllowMultipleAllocations),
	}
	if profile := attribute(d, driver, "profile"); profile != "" && strings.HasPrefix(kept.kind.String(), "mig.") {
		kept.product = textOf(whole + "-MIG-" + profile)
	}
	kept.barred = slices.ContainsFunc(d.Taints, func(t resource.DeviceTaint) bool { return t.Effect != resource.DeviceTaintEffectNone })
	for name, c := range d.Capacity {
		kept.capacity = append(kept.capacity, capacityOf(string(name), c))
	}
	slices.SortFunc(kept.capacity, func(a, b capacity) int { return cmp.Compare(a.of.String(), b.of.String()) })
	for _, c := range d.ConsumesCounters {
		kept.consumes = append(kept.consumes, countersOf(c.CounterSet, c.Counters)...)
	}
	return kept
}

// kindOf says which device classes select a device, as DeviceClass.Kind has it. A device that a driver would hand to a virtual machine is
// left out: the same GPU is there as itself.
func kindOf(d *resource.Device, driver string) string {
	switch attribute(d, driver, "type") {
	case "mig":
		_, domain, _ := strings.Cut(driver, ".")
		return "mig." + domain
	case "vfio":
		return ""
	}
	return driver
}

// attribute is a device's attribute that is a string. Its name may have the driver's domain.
func attribute(d *resource.Device, driver, name string) string {
	for _, key := range []string{name, driver + "/" + name} {
		if a, ok := d.Attributes[resource.QualifiedName(key)]; ok && a.StringValue != nil {
			return *a.StringValue
		}
	}
	return ""
}

func placeOf(s *resource.ResourceSliceSpec, d *resource.Device) place {
	node, nodes, all := s.NodeName, s.NodeSelector, s.AllNodes
	if isTrue(s.PerDeviceNodeSelection) {
		node, nodes, all = d.NodeName, d.NodeSelector, d.AllNodes
	}
	switch {
	case node != nil:
		return place{node: textOf(*node)}
	case nodes != nil:
		chosen := selectorOf(nodes)
		return place{nodes: &chosen}
	}
	return place{all: isTrue(all)}
}

func capacityOf(name string, c resource.DeviceCapacity) capacity {
	n := valueOf(c.Value)
	kept := capacity{amount{textOf(name), n}, n}
	if c.RequestPolicy != nil && c.RequestPolicy.Default != nil {
		kept.byDefault = valueOf(*c.RequestPolicy.Default)
	}
	return kept
}

func countersOf(set string, all map[string]resource.Counter) (kept []counter) {
	for name, c := range all {
		kept = append(kept, counter{textOf(set), textOf(name), valueOf(c.Value)})
	}
	slices.SortFunc(kept, func(a, b counter) int { return cmp.Compare(a.name.String(), b.name.String()) })
	return kept
}

// here tells whether a device can be used on a node.
func (p place) here(name text, n *Node) bool {
	return p.all || p.node == name && name != (text{}) || p.nodes != nil && p.nodes.matches(name.String(), n.labels)
}
