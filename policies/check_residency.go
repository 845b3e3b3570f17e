package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meridian-mesh/meridian/geo"
)

func (p *parsing) residencies() {
	p.customJurisdictions()
	for i := range p.set.Residencies {
		r := &p.set.Residencies[i]
		c := p.of(KindResidency, string(r.Metadata.Name))
		if r.Metadata.Name == "any" {
			c.complain("metadata.name", "\"any\" is what requests are called that nothing binds: choose another name")
		}
		orDefault(&r.Spec.UnknownLocation, UnknownRefuse)
		c.oneOf("spec.unknownLocation", string(r.Spec.UnknownLocation), string(UnknownRefuse), string(UnknownPin), string(UnknownIgnore))
		c.match(&r.Spec.Match)
		if len(r.Spec.Match.Countries) == 0 {
			c.onlyIfWritten("spec.unknownLocation", "matters only to rules that match countries: remove it")
		}
		c.within(r)
	}
}

func (c check) onlyIfWritten(field, message string) {
	if c.written(field) {
		c.complain(field, "%s", message)
	}
}

// customJurisdictions resolves the sets that rules define, for all rules.
func (p *parsing) customJurisdictions() {
	defined := map[string]string{}
	for i := range p.set.Residencies {
		r := &p.set.Residencies[i]
		c := p.of(KindResidency, string(r.Metadata.Name))
		for j := range r.Spec.Jurisdictions {
			custom := &r.Spec.Jurisdictions[j]
			field := fmt.Sprintf("spec.jurisdictions[%d]", j)
			if _, builtIn := geo.Jurisdiction(custom.Name); builtIn || custom.Name == "" || strings.HasPrefix(custom.Name, "region/") {
				c.complain(field+".name", "%q is built in or empty: choose another name", clip(custom.Name))
			}
			if other, taken := defined[custom.Name]; taken {
				c.complain(field+".name", "%q is already defined by Residency %s: define it once", clip(custom.Name), other)
			}
			defined[custom.Name] = string(r.Metadata.Name)
			custom.CountrySet = c.countries(field+".countries", custom.Countries, nil)
			if len(custom.Countries) == 0 {
				c.complain(field+".countries", "is empty: name at least one country")
			}
		}
	}
}

// countries resolves a list of country codes, unions and custom names.
func (c check) countries(field string, names []string, custom map[string]geo.CountrySet) geo.CountrySet {
	var all geo.CountrySet
	for i, name := range names {
		set, ok := geo.Jurisdiction(name)
		if !ok {
			set, ok = custom[name]
		}
		if !ok {
			known := slices.Concat(geo.Unions(), keysOf(custom), asStrings(geo.Countries().Countries()))
			c.p.complain(c.doc, fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("%q is no country, union or defined jurisdiction%s", clip(name), unitedKingdom(name)), nearest(name, known))
		}
		all = all.Union(set)
	}
	distinct(c, field, names)
	return all
}

func keysOf(sets map[string]geo.CountrySet) []string {
	var keys []string
	for k := range sets {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (c check) match(m *ResidencyMatch) {
	if len(m.Countries)+len(m.Tenants)+len(m.Labels)+len(m.Services) == 0 {
		c.complain("spec.match", "is empty: say what is pinned, by countries, tenants, labels or services")
	}
	m.CountrySet = c.countries("spec.match.countries", m.Countries, c.p.set.customJurisdictions())
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

// within checks a rule's boundary: every name means something, and some region is inside.
func (c check) within(r *Residency) {
	if len(r.Spec.Within) == 0 {
		c.complain("spec.within", "is empty: say where the matched requests may be served")
		return
	}
	distinct(c, "spec.within", r.Spec.Within)
	known := c.p.set.boundaryNames()
	good := true
	for i, name := range r.Spec.Within {
		if !slices.Contains(known, name) {
			good = false
			c.p.complain(c.doc, fmt.Sprintf("spec.within[%d]", i), fmt.Sprintf("%q is no jurisdiction, country or region/NAME%s", clip(name), unitedKingdom(name)), nearest(name, known))
		}
	}
	if good && len(c.p.set.Boundary(r)) == 0 {
		c.complain("spec.within", "no Region is inside %s: every request that this matches would be refused", strings.Join(r.Spec.Within, ", "))
	}
}
