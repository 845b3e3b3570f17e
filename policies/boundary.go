package policies

import (
	"slices"

	"github.com/meridian-mesh/meridian/geo"
)

// Boundary is the regions inside a rule's `within`, sorted.
func (s *Set) Boundary(rule *Residency) []RegionName {
	custom := s.customJurisdictions()
	var inside []RegionName
	for _, r := range s.Regions {
		if slices.ContainsFunc(rule.Spec.Within, func(name string) bool { return holds(name, &r, custom) }) {
			inside = append(inside, r.Metadata.Name)
		}
	}
	return inside
}

// holds says whether a region is inside what one name of a boundary stands for.
func holds(name string, r *Region, custom map[string]geo.CountrySet) bool {
	if name == regionPrefix+string(r.Metadata.Name) || slices.Contains(r.Spec.Jurisdictions, name) {
		return true
	}
	set, ok := geo.Jurisdiction(name)
	if !ok {
		set = custom[name]
	}
	return set.Contains(r.Spec.Place.Country)
}

// regionPrefix marks a name in `within` that stands for one region.
const regionPrefix = "region/"

func (s *Set) customJurisdictions() map[string]geo.CountrySet {
	custom := map[string]geo.CountrySet{}
	for _, r := range s.Residencies {
		for _, j := range r.Spec.Jurisdictions {
			custom[j.Name] = j.CountrySet
		}
	}
	return custom
}

// boundaryNames are all names that may stand in `within`.
func (s *Set) boundaryNames() []string {
	names := slices.Concat(geo.Unions(), keysOf(s.customJurisdictions()))
	for _, r := range s.Regions {
		names = append(names, regionPrefix+string(r.Metadata.Name))
		names = append(names, r.Spec.Jurisdictions...)
	}
	return append(names, asStrings(geo.Countries().Countries())...)
}
