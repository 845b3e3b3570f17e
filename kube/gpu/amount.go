package gpu

import (
	"cmp"
	"slices"

	core "k8s.io/api/core/v1"
	dra "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// most bounds every quantity, so that sums of what thousands of objects claim can't overflow.
const most = 1 << 48

// amount is how much of something: devices of a resource, a capacity or a counter.
type amount struct {
	of text
	n  int64
}

// bounded reads a quantity as a whole number of 0 to most. Fractions round up, as the scheduler rounds them.
func bounded(n int64) int64 { return min(max(n, 0), most) }

func valueOf(q resource.Quantity) int64 { return bounded(q.Value()) }

func milliOf(q *resource.Quantity) int64 { return bounded(q.MilliValue()) }

// devicesIn are the accelerators in a list of resources, sorted by name.
func (s Settings) devicesIn(list core.ResourceList) (all []amount) {
	for name, q := range list {
		if n := valueOf(q); n > 0 && s.counts(string(name)) {
			all = append(all, amount{textOf(string(name)), n})
		}
	}
	sortAmounts(all)
	return all
}

func sortAmounts(all []amount) {
	slices.SortFunc(all, func(a, b amount) int { return cmp.Compare(a.of.String(), b.of.String()) })
}

// add adds to the amount of one thing in a list; what comes to nothing leaves it.
func add(all []amount, a amount, times int64) []amount {
	i := slices.IndexFunc(all, func(have amount) bool { return have.of == a.of })
	if i < 0 {
		return append(all, amount{a.of, a.n * times})
	}
	if all[i].n += a.n * times; all[i].n == 0 {
		return slices.Delete(all, i, i+1)
	}
	return all
}

// of is the amount of one thing in a list, 0 where it is not there.
func of(all []amount, what text) int64 {
	for _, a := range all {
		if a.of == what {
			return a.n
		}
	}
	return 0
}

// capacitiesOf are capacities of a shared device that are asked for, or were taken, sorted by name.
func capacitiesOf(list map[dra.QualifiedName]resource.Quantity) (all []amount) {
	for name, q := range list {
		all = append(all, amount{textOf(string(name)), valueOf(q)})
	}
	sortAmounts(all)
	return all
}
