package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meridian-mesh/meridian/geo"
)

func (p *parsing) residencies() {
	p.customJurisdictions()
	countries, boundaries := p.set.countryNames(), p.set.boundaryNames()
	for i := range p.set.Residencies {
		r := &p.set.Residencies[i]
		c := p.of(KindResidency, string(r.Metadata.Name))
		if r.Metadata.Name == "any" {
			c.complain("metadata.name", "\"any\" is what requests are called that nothing binds: choose another name")
		}
		c.match(&r.Spec.Match, countries)
		c.unknownLocation(&r.Spec)
		c.within(r, boundaries)
	}
}

// customJurisdictions resolves the sets that rules define, for all rules.
func (p *parsing) customJurisdictions() {
	builtIn := append(geo.Unions(), asStrings(geo.Countries().Countries())...)
	slices.Sort(builtIn)
	defined := p.claimedJurisdictions()
	for i := range p.set.Residencies {
		r := &p.set.Residencies[i]
		c := p.of(KindResidency, string(r.Metadata.Name))
		for j := range r.Spec.Jurisdictions {
			custom := &r.Spec.Jurisdictions[j]
			field := fmt.Sprintf("spec.jurisdictions[%d]", j)
			c.jurisdictionName(field+".name", custom.Name)
			if other, taken := defined[custom.Name]; taken {
				c.complain(field+".name", "%q is already defined by %s: define it once", clip(custom.Name), other)
			}
			defined[custom.Name] = "Residency " + string(r.Metadata.Name)
			custom.CountrySet = c.countries(field+".countries", custom.Countries, builtIn)
			if len(custom.Countries) == 0 {
				c.complain(field+".countries", "is empty: name at least one country")
			}
		}
	}
}

// claimedJurisdictions are the names that regions claim, with who does. What a rule defines is of another kind, and
// under the same name would silently widen a boundary.
func (p *parsing) claimedJurisdictions() map[string]string {
	claimed := map[string]string{}
	for _, r := range p.set.Regions {
		for _, name := range r.Spec.Jurisdictions {
			claimed[name] = "Region " + string(r.Metadata.Name)
		}
	}
	return claimed
}

// jurisdictionName complains about names that are, or that a reader would take for, something else.
func (c check) jurisdictionName(field, name string) {
	switch {
	case name == "" || strings.ContainsAny(name, "/ "):
		c.complain(field, "%q is not a name for a jurisdiction: it must not be empty or contain \"/\" or a space", clip(name))
	case isBuiltIn(strings.ToUpper(name)):
		c.complain(field, "%q is built in as %s: choose another name", name, strings.ToUpper(name))
	}
}

func isBuiltIn(name string) bool {
	_, ok := geo.Jurisdiction(name)
	return ok
}

// countries resolves a list of names, of those that are known.
func (c check) countries(field string, names, known []string) geo.CountrySet {
	var all geo.CountrySet
	for i, name := range names {
		if c.known(fmt.Sprintf("%s[%d]", field, i), "country, union or defined jurisdiction", name, known) {
			set, _ := c.p.set.Jurisdiction(name)
			all = all.Union(set)
		}
	}
	distinct(c, field, names)
	return all
}

// known complains about a name that stands for nothing.
func (c check) known(field, what, name string, names []string) bool {
	if _, ok := slices.BinarySearch(names, name); ok {
		return true
	}
	near := nearest(name, names)
	if name == "UK" { // the mistake that is made most often
		near = "GB"
	}
	c.p.complain(c.doc, field, fmt.Sprintf("%q is no %s", clip(name), what), near)
	return false
}

func (c check) match(m *ResidencyMatch, countries []string) {
	if len(m.Countries)+len(m.Tenants)+len(m.Labels)+len(m.Services) == 0 {
		c.complain("spec.match", "is empty: say what is pinned, by countries, tenants, labels or services")
	}
	m.CountrySet = c.countries("spec.match.countries", m.Countries, countries)
	for i, s := range m.Services {
		c.reference(fmt.Sprintf("spec.match.services[%d]", i), KindService, string(s))
	}
	for i, t := range m.Tenants {
		c.headerValue(fmt.Sprintf("spec.match.tenants[%d]", i), string(t))
	}
	for i, l := range m.Labels {
		c.headerValue(fmt.Sprintf("spec.match.labels[%d]", i), string(l))
	}
	distinct(c, "spec.match.tenants", m.Tenants)
	distinct(c, "spec.match.labels", m.Labels)
	distinct(c, "spec.match.services", m.Services)
}

func (c check) headerValue(field, value string) {
	if value == "" || len(value) > 256 || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		c.complain(field, "%q can't be the value of a header", clip(value))
	}
}

func (c check) unknownLocation(r *ResidencySpec) {
	if len(r.Match.Countries) == 0 && c.written("spec.unknownLocation") {
		c.complain("spec.unknownLocation", "matters only to rules that match countries: remove it")
	}
	orDefault(&r.UnknownLocation, UnknownRefuse)
	c.oneOf("spec.unknownLocation", string(r.UnknownLocation), string(UnknownRefuse), string(UnknownPin), string(UnknownIgnore))
}

// within checks a rule's boundary: every name means something, and some region is inside.
func (c check) within(r *Residency, names []string) {
	if len(r.Spec.Within) == 0 {
		c.complain("spec.within", "is empty: say where the matched requests may be served")
		return
	}
	distinct(c, "spec.within", r.Spec.Within)
	good := true
	for i, name := range r.Spec.Within {
		region, isRegion := strings.CutPrefix(name, regionPrefix)
		if isRegion && c.p.refused[string(KindRegion)+"/"+region] {
			good = false
			continue
		}
		good = c.known(fmt.Sprintf("spec.within[%d]", i), "jurisdiction, country or region/NAME", name, names) && good
	}
	if good && len(c.p.set.Boundary(r)) == 0 {
		c.complain("spec.within", "no Region is inside %s: every request that this matches would be refused", clip(strings.Join(r.Spec.Within, ", ")))
	}
}
