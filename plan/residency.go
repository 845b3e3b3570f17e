package plan

import (
	"cmp"
	"slices"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// residency is the Residency rules of one policy set, compiled: the Admission for proxies, and for each service the
// classes that its requests can have.
type residency struct {
	admission *Admission
	classes   map[policies.ServiceName][]*class // sorted by ID, without those that are refused
}

// class is a residency class and where its requests may not go.
type class struct {
	id world.ClassID
	// forbidden names, for each region by its place in Set.Regions, the rules whose boundary leaves it out; none
	// where the region is permitted.
	forbidden [][]policies.ResidencyName
}

// compiler makes a residency; its rules stand for those of Set.Residencies, in that order.
type compiler struct {
	set *policies.Set
	// permits says which regions, by place in Set.Regions, each rule permits.
	permits [][]bool
	// made has the outcome without service and groups, and the class, for each set of rules, bound and unlocated.
	made map[string]verdict
}

// verdict is what a set of rules makes of a request.
type verdict struct {
	class   *class  // nil where refused
	refusal *Reason // nil where not
}

func compile(set *policies.Set) *residency {
	c := &compiler{set: set, made: map[string]verdict{}}
	for i := range set.Residencies {
		c.permits = append(c.permits, c.regionsOf(&set.Residencies[i]))
	}
	r := &residency{admission: &Admission{}, classes: map[policies.ServiceName][]*class{}}
	countries, tenants, labels := c.countries(r.admission), c.tenants(r.admission), c.labels(r.admission)
	for i := range set.Services {
		name := set.Services[i].Metadata.Name
		requests := combinations(c.bindingService(name), countries, tenants, labels)
		r.classes[name] = c.outcomes(r.admission, name, requests)
	}
	return r
}

// regionsOf says which regions a rule permits.
func (c *compiler) regionsOf(rule *policies.Residency) []bool {
	permitted := make([]bool, len(c.set.Regions))
	boundary := c.set.Boundary(rule)
	for i := range c.set.Regions {
		_, permitted[i] = slices.BinarySearch(boundary, c.set.Regions[i].Metadata.Name)
	}
	return permitted
}

// bindingService is the rules whose match on services, if they have one, a service meets.
func (c *compiler) bindingService(name policies.ServiceName) ruleSet {
	return c.rulesWhere(func(m *policies.ResidencyMatch) bool {
		return len(m.Services) == 0 || slices.Contains(m.Services, name)
	})
}

func (c *compiler) rulesWhere(holds func(*policies.ResidencyMatch) bool) ruleSet {
	rules := newRuleSet(len(c.set.Residencies))
	for i := range c.set.Residencies {
		if holds(&c.set.Residencies[i].Spec.Match) {
			rules.add(i)
		}
	}
	return rules
}

// request is all requests for one service whose values are in the same groups: the groups, the rules that bind them,
// and those that would if their country were known and theirs.
type request struct {
	country, tenant, label Group
	bound, unlocated       ruleSet
}

// combinations are the requests for a service that rules bind by their match on services, one for each combination of
// groups, in order.
func combinations(bound ruleSet, countries, tenants, labels []group) []request {
	var all []request
	for _, c := range countries {
		for _, t := range tenants {
			for _, l := range labels {
				rest := bound.and(t.holds).and(l.holds)
				all = append(all, request{c.name, t.name, l.name, rest.and(c.holds), rest.and(c.unlocated)})
			}
		}
	}
	return all
}

// outcomes appends a service's outcomes to the admission and gives back the classes in them.
func (c *compiler) outcomes(a *Admission, service policies.ServiceName, requests []request) []*class {
	var classes []*class
	for _, r := range requests {
		v := c.verdict(r.bound, r.unlocated)
		o := Outcome{Service: service, Country: r.country, Tenant: r.tenant, Label: r.label, Refusal: v.refusal}
		if v.class != nil {
			o.Class = v.class.id
			classes = append(classes, v.class)
		}
		a.Outcomes = append(a.Outcomes, o)
	}
	slices.SortFunc(classes, func(x, y *class) int { return cmp.Compare(x.id, y.id) })
	return slices.Compact(classes)
}

// verdict says what becomes of a request. That its country can't be told comes first: nobody knows its boundary then.
func (c *compiler) verdict(bound, unlocated ruleSet) verdict {
	key := bound.key() + unlocated.key()
	if v, ok := c.made[key]; ok {
		return v
	}
	var v verdict
	switch made := c.classOf(bound); {
	case !unlocated.empty():
		v.refusal = &Reason{Code: UnknownLocation, Policies: c.names(unlocated)}
	case !slices.ContainsFunc(made.forbidden, func(by []policies.ResidencyName) bool { return by == nil }):
		v.refusal = &Reason{Code: NoPermittedRegion, Policies: c.names(bound)}
	default:
		v.class = made
	}
	c.made[key] = v
	return v
}

// classOf is the class of requests that these rules bind.
func (c *compiler) classOf(bound ruleSet) *class {
	made := &class{id: world.ClassOf(c.names(bound)), forbidden: make([][]policies.ResidencyName, len(c.set.Regions))}
	for rule := range bound.all() {
		for region, permitted := range c.permits[rule] {
			if !permitted {
				made.forbidden[region] = append(made.forbidden[region], c.set.Residencies[rule].Metadata.Name)
			}
		}
	}
	return made
}

// names are the names of rules, sorted, as Set.Residencies is.
func (c *compiler) names(rules ruleSet) []policies.ResidencyName {
	var names []policies.ResidencyName
	for i := range rules.all() {
		names = append(names, c.set.Residencies[i].Metadata.Name)
	}
	return names
}
