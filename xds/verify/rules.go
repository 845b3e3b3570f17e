package verify

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/policies"
)

// subject is what the rules know of a request. An empty country is an unknown location.
type subject struct {
	country geo.Country
	tenant  policies.Tenant
	label   policies.DataLabel
}

// These stand for every value that no rule and no table names. ZZ is no country: ISO 3166 leaves it to users.
const (
	unnamed        = "any other"
	unnamedCountry = "ZZ"
)

func (s subject) String() string {
	country := cmp.Or(string(s.country), "unknown")
	if s.country == unnamedCountry {
		country = unnamed
	}
	return "country " + country + ", tenant " + cmp.Or(string(s.tenant), "none") + ", label " + cmp.Or(string(s.label), "none")
}

// rulebook reads the raw residency rules. It takes nothing from how plan or policies resolve them.
type rulebook struct {
	rules  []*rule
	custom map[string]geo.CountrySet
}

// rule is one policy, with what it permits.
type rule struct {
	*policies.Residency
	inside map[policies.RegionName]bool
}

func (r *rule) name() policies.ResidencyName { return r.Metadata.Name }

// permits says whether a region is inside the rule's boundary.
func (r *rule) permits(region *policies.Region) bool { return r.inside[region.Metadata.Name] }

// concerns says whether requests for a service can be bound by the rule; every rule concerns one that is not named.
func (r *rule) concerns(service policies.ServiceName) bool {
	return service == "" || len(r.Spec.Match.Services) == 0 || slices.Contains(r.Spec.Match.Services, service)
}

func newRulebook(set *policies.Set) *rulebook {
	b := &rulebook{custom: map[string]geo.CountrySet{}}
	for _, r := range set.Residencies {
		for _, j := range r.Spec.Jurisdictions {
			all := b.custom[j.Name]
			for _, name := range j.Countries {
				if countries, ok := geo.Jurisdiction(name); ok {
					all = all.Union(countries)
				}
			}
			b.custom[j.Name] = all
		}
	}
	for i := range set.Residencies {
		r := &rule{Residency: &set.Residencies[i], inside: map[policies.RegionName]bool{}}
		for j := range set.Regions {
			if b.within(r.Spec.Within, &set.Regions[j]) {
				r.inside[set.Regions[j].Metadata.Name] = true
			}
		}
		b.rules = append(b.rules, r)
	}
	slices.SortFunc(b.rules, func(x, y *rule) int { return cmp.Compare(x.name(), y.name()) })
	return b
}

// within says whether a region is in any of the named places.
func (b *rulebook) within(names []string, region *policies.Region) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		if one, ok := strings.CutPrefix(name, "region/"); ok {
			return one == string(region.Metadata.Name)
		}
		return slices.Contains(region.Spec.Jurisdictions, name) || b.countries(name).Contains(region.Spec.Place.Country)
	})
}

// countries are those that a name stands for; none for a name that is not known.
func (b *rulebook) countries(name string) geo.CountrySet {
	if set, ok := geo.Jurisdiction(name); ok {
		return set
	}
	return b.custom[name]
}

// find is a rule by name; nil where there is none.
func (b *rulebook) find(name policies.ResidencyName) *rule {
	i, ok := slices.BinarySearchFunc(b.rules, name, func(r *rule, n policies.ResidencyName) int { return cmp.Compare(r.name(), n) })
	if !ok {
		return nil
	}
	return b.rules[i]
}

// binding are the rules that bind a subject's requests for any service that they concern; refusing are those that need a
// location which is not known.
func (b *rulebook) binding(s subject) (bound, refusing []*rule) {
	for _, r := range b.rules {
		m := r.Spec.Match
		if len(m.Tenants) > 0 && !slices.Contains(m.Tenants, s.tenant) || len(m.Labels) > 0 && !slices.Contains(m.Labels, s.label) {
			continue
		}
		switch {
		case len(m.Countries) == 0:
			bound = append(bound, r)
		case s.country != "":
			if slices.ContainsFunc(m.Countries, func(name string) bool { return b.countries(name).Contains(s.country) }) {
				bound = append(bound, r)
			}
		case r.Spec.UnknownLocation == policies.UnknownPin:
			bound = append(bound, r)
		case r.Spec.UnknownLocation != policies.UnknownIgnore:
			refusing = append(refusing, r)
		}
	}
	return bound, refusing
}

// concerning are those of some rules that concern a service.
func concerning(rules []*rule, service policies.ServiceName) []policies.ResidencyName {
	var names []policies.ResidencyName
	for _, r := range rules {
		if r.concerns(service) {
			names = append(names, r.name())
		}
	}
	return names
}

// subjects are one of each kind of request that the rules, or tables with the given values by header, can tell apart.
func (b *rulebook) subjects(seen map[string]map[string]bool, countryHeader, tenantHeader, labelHeader string) []subject {
	countries, tenants, labels := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range b.rules {
		for _, name := range r.Spec.Match.Countries {
			for _, c := range b.countries(name).Countries() {
				countries[string(c)] = true
			}
		}
		for _, t := range r.Spec.Match.Tenants {
			tenants[string(t)] = true
		}
		for _, l := range r.Spec.Match.Labels {
			labels[string(l)] = true
		}
	}
	maps.Copy(countries, seen[countryHeader])
	maps.Copy(tenants, seen[strings.ToLower(tenantHeader)])
	maps.Copy(labels, seen[strings.ToLower(labelHeader)])
	var all []subject
	for _, c := range withUnnamed(countries, unnamedCountry) {
		for _, t := range withUnnamed(tenants, unnamed) {
			for _, l := range withUnnamed(labels, unnamed) {
				all = append(all, subject{geo.Country(c), policies.Tenant(t), policies.DataLabel(l)})
			}
		}
	}
	return all
}

// withUnnamed are the values, sorted, with none at all and one that nobody names.
func withUnnamed(values map[string]bool, unnamed string) []string {
	list := append(slices.Collect(maps.Keys(values)), "", unnamed)
	slices.Sort(list)
	return slices.Compact(list)
}
