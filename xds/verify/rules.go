package verify

import (
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

func (s subject) String() string {
	country := string(s.country)
	if country == "" {
		country = "unknown"
	}
	return "country " + country + ", tenant " + orNone(string(s.tenant)) + ", label " + orNone(string(s.label))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// rulebook reads the raw residency rules. It takes nothing from how plan or policies resolve them.
type rulebook struct {
	set    *policies.Set
	custom map[string]geo.CountrySet
}

func newRulebook(set *policies.Set) *rulebook {
	b := &rulebook{set: set, custom: map[string]geo.CountrySet{}}
	for _, r := range set.Residencies {
		for _, j := range r.Spec.Jurisdictions {
			var all geo.CountrySet
			for _, name := range j.Countries {
				if countries, ok := geo.Jurisdiction(name); ok {
					all = all.Union(countries)
				}
			}
			b.custom[j.Name] = all
		}
	}
	return b
}

// binding are the rules that bind a subject's requests for a service; refused are those of them that need a location
// which is not known.
func (b *rulebook) binding(s subject, service policies.ServiceName) (bound, refused []*policies.Residency) {
	for i := range b.set.Residencies {
		r := &b.set.Residencies[i]
		m := r.Spec.Match
		if len(m.Tenants) > 0 && !slices.Contains(m.Tenants, s.tenant) ||
			len(m.Labels) > 0 && !slices.Contains(m.Labels, s.label) ||
			len(m.Services) > 0 && !slices.Contains(m.Services, service) {
			continue
		}
		switch {
		case len(m.Countries) == 0:
			bound = append(bound, r)
		case s.country != "":
			if b.anyCovers(m.Countries, s.country) {
				bound = append(bound, r)
			}
		case r.Spec.UnknownLocation == policies.UnknownPin:
			bound = append(bound, r)
		case r.Spec.UnknownLocation != policies.UnknownIgnore:
			refused = append(refused, r)
		}
	}
	return bound, refused
}

func (b *rulebook) anyCovers(names []string, c geo.Country) bool {
	return slices.ContainsFunc(names, func(name string) bool { return b.covers(name, c) })
}

func (b *rulebook) covers(name string, c geo.Country) bool {
	if set, ok := geo.Jurisdiction(name); ok {
		return set.Contains(c)
	}
	return b.custom[name].Contains(c)
}

// inside says whether a region is inside a rule's boundary.
func (b *rulebook) inside(r *policies.Residency, region *policies.Region) bool {
	return slices.ContainsFunc(r.Spec.Within, func(name string) bool {
		if one, ok := strings.CutPrefix(name, "region/"); ok {
			return one == string(region.Metadata.Name)
		}
		return slices.Contains(region.Spec.Jurisdictions, name) || b.covers(name, region.Spec.Place.Country)
	})
}

// subjects are one of each kind of request that the rules or the given header values can tell apart.
func (b *rulebook) subjects(seen map[string]map[string]bool, g *policies.Gateway) []subject {
	countries, tenants, labels := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range b.set.Residencies {
		for _, name := range r.Spec.Match.Countries {
			set, ok := geo.Jurisdiction(name)
			if !ok {
				set = b.custom[name]
			}
			for _, c := range set.Countries() {
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
	merge(countries, seen[headerCountry])
	merge(tenants, seen[g.Spec.TenantHeader])
	merge(labels, seen[g.Spec.DataLabelHeader])
	var all []subject
	for _, c := range withUnnamed(countries, "ZZ") {
		for _, t := range withUnnamed(tenants, "verify-unnamed") {
			for _, l := range withUnnamed(labels, "verify-unnamed") {
				all = append(all, subject{geo.Country(c), policies.Tenant(t), policies.DataLabel(l)})
			}
		}
	}
	return all
}

func merge(into, from map[string]bool) {
	for k := range from {
		into[k] = true
	}
}

// withUnnamed are the values, sorted, with none at all and one that nobody names.
func withUnnamed(values map[string]bool, unnamed string) []string {
	list := []string{"", unnamed}
	for v := range values {
		list = append(list, v)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func namesOf(rules []*policies.Residency) []policies.ResidencyName {
	names := make([]policies.ResidencyName, len(rules))
	for i, r := range rules {
		names[i] = r.Metadata.Name
	}
	return names
}
