package policies

import (
	"slices"
	"strings"

	"github.com/meridian-mesh/meridian/geo"
)

// regionPrefix marks a name in `within` that stands for one region.
const regionPrefix = "region/"

// Jurisdiction is the set of countries that a name stands for: built in, or defined by a rule. A name that only
// regions claim for themselves is none.
func (s *Set) Jurisdiction(name string) (set geo.CountrySet, ok bool) {
	if set, ok = geo.Jurisdiction(name); ok {
		return set, true
	}
	for i := range s.Residencies {
		for _, j := range s.Residencies[i].Spec.Jurisdictions {
			if j.Name == name {
				return j.CountrySet, true
			}
		}
	}
	return geo.CountrySet{}, false
}

// Boundary is the regions inside a rule's `within`, sorted.
func (s *Set) Boundary(rule *Residency) []RegionName {
	var countries geo.CountrySet
	for _, name := range rule.Spec.Within {
		set, _ := s.Jurisdiction(name)
		countries = countries.Union(set)
	}
	var inside []RegionName
	for i := range s.Regions {
		r := &s.Regions[i]
		if countries.Contains(r.Spec.Place.Country) || r.claims(rule.Spec.Within) {
			inside = append(inside, r.Metadata.Name)
		}
	}
	return inside
}

// claims says whether a region is named, itself or by a jurisdiction of its own.
func (r *Region) claims(within []string) bool {
	return slices.ContainsFunc(within, func(name string) bool {
		region, isRegion := strings.CutPrefix(name, regionPrefix)
		return isRegion && region == string(r.Metadata.Name) || slices.Contains(r.Spec.Jurisdictions, name)
	})
}

// countryNames are all names that stand for countries, sorted.
func (s *Set) countryNames() []string {
	names := append(geo.Unions(), asStrings(geo.Countries().Countries())...)
	for _, r := range s.Residencies {
		for _, j := range r.Spec.Jurisdictions {
			names = append(names, j.Name)
		}
	}
	slices.Sort(names)
	return names
}

// boundaryNames are all names that may stand in `within`, sorted.
func (s *Set) boundaryNames() []string {
	names := s.countryNames()
	for _, r := range s.Regions {
		names = append(names, regionPrefix+string(r.Metadata.Name))
		names = append(names, r.Spec.Jurisdictions...)
	}
	slices.Sort(names)
	return names
}
