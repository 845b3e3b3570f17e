package gpu

import (
	"slices"

	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Claim is what is kept of a ResourceClaim for accelerators.
type Claim struct {
	takes []allocation
	asks  []request // of a pod's own claim: one of its replicas asks for as much
	waits bool      // nothing was allocated to it yet
	key   text      // equal for claims that ask for the same
}

// allocation is a device, or a share of one, that a claim holds.
type allocation struct {
	pool     poolKey
	device   text
	consumes []amount
}

// request asks for devices: for the first of some options that can be had.
type request []option

type option struct {
	kind, product text // any product if empty
	count         int64
	all           bool // that a node has
	capacity      []amount
}

// ClaimOf keeps what counts of a ResourceClaim; ok is false where it has nothing to do with accelerators. Access as an administrator
// takes nothing from others. A claim that nothing was allocated to is demand if it was made for a pod.
func ClaimOf(c *resource.ResourceClaim, s Settings) (kept Claim, ok bool) {
	if slices.ContainsFunc(c.OwnerReferences, func(o meta.OwnerReference) bool { return o.Kind == "Pod" }) {
		kept.asks = s.requestsOf(&c.Spec.Devices)
		kept.key = keyOf(keysOf(kept.asks))
	}
	if a := c.Status.Allocation; a != nil {
		for i := range a.Devices.Results {
			if r := &a.Devices.Results[i]; s.drives(r.Driver) && !isTrue(r.AdminAccess) {
				kept.takes = append(kept.takes, allocation{poolKey{textOf(r.Driver), textOf(r.Pool)}, textOf(r.Device), capacitiesOf(r.ConsumedCapacity)})
			}
		}
		return kept, len(kept.takes) > 0
	}
	kept.waits = len(kept.asks) > 0 && c.DeletionTimestamp == nil
	return kept, kept.waits
}

// requestsOf reads which accelerators a claim asks for.
func (s Settings) requestsOf(c *resource.DeviceClaim) (all []request) {
	for _, r := range c.Requests {
		var options request
		if e := r.Exactly; e != nil && !isTrue(e.AdminAccess) {
			options = s.option(options, resource.DeviceSubRequest{
				DeviceClassName: e.DeviceClassName, AllocationMode: e.AllocationMode, Count: e.Count, Capacity: e.Capacity,
			})
		}
		for _, sub := range r.FirstAvailable {
			options = s.option(options, sub)
		}
		if len(options) > 0 {
			all = append(all, options)
		}
	}
	return all
}

// option adds what a request would take, if that is accelerators.
func (s Settings) option(options request, r resource.DeviceSubRequest) request {
	class, ok := s.selects(r.DeviceClassName)
	if !ok {
		return options
	}
	o := option{kind: textOf(class.Kind), product: textOf(class.Product), count: max(bounded(r.Count), 1), all: r.AllocationMode == resource.DeviceAllocationModeAll}
	if r.Capacity != nil {
		o.capacity = capacitiesOf(r.Capacity.Requests)
	}
	return append(options, o)
}

func isTrue(b *bool) bool { return b != nil && *b }

// keysOf are requests as values that encode.
func keysOf(all []request) (keys []any) {
	for _, r := range all {
		var options []any
		for _, o := range r {
			options = append(options, []any{o.kind.String(), o.product.String(), o.count, o.all, keyed(o.capacity)})
		}
		keys = append(keys, options)
	}
	return keys
}
