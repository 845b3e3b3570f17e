package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/policies"
)

// The groups that are not named after rules. No rule can be called so.
const (
	// otherGroup is for values that no rule names.
	otherGroup Group = "*"
	// unknownGroup is for clients whose country can't be told, where that makes a difference.
	unknownGroup Group = "?"
)

// group is a Group with its rules.
type group struct {
	name Group
	// holds are the rules whose match on the dimension holds for the group's values, or that have none.
	holds ruleSet
	// unlocated are the rules that refuse because the country can't be told; none but in the unknown group.
	unlocated ruleSet
}

// dimension is one thing that rules match, with values of type V.
type dimension[V ~string] struct {
	named func(*policies.ResidencyMatch) bool
	match func(*policies.ResidencyMatch, V) bool
}

// groupOf is the group of a value.
func groupOf[V ~string](c *compiler, d dimension[V], value V) group {
	g := group{holds: newRuleSet(len(c.set.Residencies)), unlocated: newRuleSet(len(c.set.Residencies))}
	var names []string
	for i := range c.set.Residencies {
		match := &c.set.Residencies[i].Spec.Match
		matches := d.named(match) && d.match(match, value)
		if matches {
			names = append(names, string(c.set.Residencies[i].Metadata.Name))
		}
		if matches || !d.named(match) {
			g.holds.add(i)
		}
	}
	g.name = otherGroup
	if len(names) > 0 {
		g.name = Group(strings.Join(names, "+"))
	}
	return g
}

// countries fills in the country groups of an admission, and gives them back once each, sorted.
func (c *compiler) countries(a *Admission) []group {
	d := dimension[geo.Country]{
		named: func(m *policies.ResidencyMatch) bool { return len(m.Countries) > 0 },
		match: func(m *policies.ResidencyMatch, v geo.Country) bool { return m.CountrySet.Contains(v) },
	}
	var named geo.CountrySet
	for i := range c.set.Residencies {
		named = named.Union(c.set.Residencies[i].Spec.Match.CountrySet)
	}
	unknown := c.unknown(groupOf(c, d, ""))
	groups := []group{groupOf(c, d, ""), unknown}
	for _, country := range named.Countries() {
		g := groupOf(c, d, country)
		a.Countries = append(a.Countries, CountryGroup{country, g.name})
		groups = append(groups, g)
	}
	a.OtherCountry, a.UnknownCountry = otherGroup, unknown.name
	return distinct(groups)
}

// unknown is the group of clients whose country can't be told: the other group, unless a rule pins or refuses them.
func (c *compiler) unknown(other group) group {
	g := group{otherGroup, other.holds.and(other.holds), newRuleSet(len(c.set.Residencies))}
	for i := range c.set.Residencies {
		spec := &c.set.Residencies[i].Spec
		if len(spec.Match.Countries) == 0 || spec.UnknownLocation == policies.UnknownIgnore {
			continue
		}
		g.name = unknownGroup
		if spec.UnknownLocation == policies.UnknownPin {
			g.holds.add(i)
		} else {
			g.unlocated.add(i)
		}
	}
	return g
}

// tenants fills in the tenant groups of an admission, and gives them back once each, sorted.
func (c *compiler) tenants(a *Admission) []group {
	a.OtherTenant = otherGroup
	return listed(c, func(m *policies.ResidencyMatch) []policies.Tenant { return m.Tenants }, func(tenant policies.Tenant, g Group) {
		a.Tenants = append(a.Tenants, TenantGroup{tenant, g})
	})
}

// labels fills in the label groups of an admission, and gives them back once each, sorted.
func (c *compiler) labels(a *Admission) []group {
	a.OtherLabel = otherGroup
	return listed(c, func(m *policies.ResidencyMatch) []policies.DataLabel { return m.Labels }, func(label policies.DataLabel, g Group) {
		a.Labels = append(a.Labels, LabelGroup{label, g})
	})
}

// listed are the groups of a dimension whose values rules list one by one, once each, sorted. put takes the group of each
// value that some rule lists, in order.
func listed[V ~string](c *compiler, values func(*policies.ResidencyMatch) []V, put func(V, Group)) []group {
	d := dimension[V]{
		named: func(m *policies.ResidencyMatch) bool { return len(values(m)) > 0 },
		match: func(m *policies.ResidencyMatch, v V) bool { return slices.Contains(values(m), v) },
	}
	groups := []group{groupOf(c, d, "")}
	for _, value := range valuesOf(c, values) {
		g := groupOf(c, d, value)
		put(value, g.name)
		groups = append(groups, g)
	}
	return distinct(groups)
}

// valuesOf are the values that some rule names, sorted.
func valuesOf[V ~string](c *compiler, values func(*policies.ResidencyMatch) []V) []V {
	all := map[V]bool{}
	for i := range c.set.Residencies {
		for _, v := range values(&c.set.Residencies[i].Spec.Match) {
			all[v] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// distinct sorts groups by name and drops repetitions.
func distinct(groups []group) []group {
	slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(a.name, b.name) })
	return slices.CompactFunc(groups, func(a, b group) bool { return a.name == b.name })
}
