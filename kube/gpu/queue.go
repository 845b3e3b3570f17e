package gpu

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meridian-mesh/meridian/world"
)

// QueueOf reads a ClusterQueue of kueue.x-k8s.io, v1beta1 or v1beta2.
func QueueOf(u *unstructured.Unstructured, s Settings) (world.Queue, error) {
	fail := func(err error) (world.Queue, error) {
		return world.Queue{}, fmt.Errorf("gpu: ClusterQueue %s: %w", u.GetName(), err)
	}
	spec, _, err := unstructured.NestedMap(u.Object, "spec")
	if err != nil {
		return fail(err)
	}
	policy, _ := spec["stopPolicy"].(string)
	cohort, _ := spec["cohort"].(string)
	cohortName, _ := spec["cohortName"].(string) // since v1beta2
	q := world.Queue{Name: u.GetName(), Cohort: cmp.Or(cohortName, cohort), Stopped: policy != "" && policy != "None"}
	for _, group := range mapsIn(spec["resourceGroups"]) {
		for _, flavor := range mapsIn(group["flavors"]) {
			if err := quotas(&q, flavor, s); err != nil {
				return fail(err)
			}
		}
	}
	for _, status := range []string{"flavorsReservation", "flavorsUsage"} {
		flavors, _, err := unstructured.NestedSlice(u.Object, "status", status)
		if err != nil {
			return fail(err)
		}
		if err := totals(&q, status, flavors); err != nil {
			return fail(err)
		}
	}
	slices.SortFunc(q.Quotas, func(a, b world.Quota) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Flavor, b.Flavor))
	})
	return q, nil
}

// quotas reads the nominal quotas of a flavor.
func quotas(q *world.Queue, flavor map[string]any, s Settings) error {
	for _, r := range mapsIn(flavor["resources"]) {
		if name := nameOf(r); s.counts(name) {
			n, err := quantity(r["nominalQuota"])
			if err != nil {
				return fmt.Errorf("flavor %s: %s: nominalQuota: %w", nameOf(flavor), name, err)
			}
			q.Quotas = append(q.Quotas, world.Quota{Resource: name, Flavor: nameOf(flavor), Nominal: n})
		}
	}
	return nil
}

// totals reads what of the quotas is reserved or used.
func totals(q *world.Queue, status string, flavors []any) error {
	for _, flavor := range mapsIn(flavors) {
		for _, r := range mapsIn(flavor["resources"]) {
			i := slices.IndexFunc(q.Quotas, func(q world.Quota) bool { return q.Flavor == nameOf(flavor) && q.Resource == nameOf(r) })
			if i < 0 {
				continue
			}
			n, err := quantity(r["total"])
			if err != nil {
				return fmt.Errorf("status.%s: flavor %s: total: %w", status, nameOf(flavor), err)
			}
			if q.Quotas[i].Reserved = max(q.Quotas[i].Reserved, n); status == "flavorsUsage" {
				q.Quotas[i].Used = n
			}
		}
	}
	return nil
}

// room is what is left of the quotas of a resource, over all flavors. ok is false where the queue has no quota of it, and so admits
// nobody who asks for it.
func roomIn(q *world.Queue, of string) (n int64, ok bool) {
	for _, quota := range q.Quotas {
		if quota.Resource == of {
			n, ok = n+quota.Room(), true
		}
	}
	return n, ok
}

// admits is how many more replicas of a shape the quotas allow, most at most.
func admits(q *world.Queue, s *Shape) (n int64) {
	if q.Stopped {
		return 0
	}
	n = most
	for _, a := range s.asks {
		room, _ := roomIn(q, a.of.String())
		n = min(n, room/a.n)
	}
	return n
}

// mapsIn are the maps in a list.
func mapsIn(list any) (all []map[string]any) {
	values, _ := list.([]any)
	for _, v := range values {
		if m, ok := v.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// nameOf is the name that a map carries.
func nameOf(m map[string]any) string {
	s, _ := m["name"].(string)
	return s
}

// quantity reads a quantity that was written as text or as a number; none is 0.
func quantity(v any) (int64, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case int64:
		return bounded(v), nil
	case string:
		q, err := resource.ParseQuantity(v)
		if err != nil {
			return 0, fmt.Errorf("%q: want a quantity, such as 8: %w", v, err)
		}
		return valueOf(q), nil
	}
	return 0, fmt.Errorf("%v: want a quantity, such as 8", v)
}
