package policies

import (
	"fmt"
	"slices"
	"strings"
)

// rulesDoNotOverlap complains about two rules that match the same value on the same dimensions: rules on different
// dimensions are meant to intersect, but two on one are a contradiction or a repetition.
func (p *parsing) rulesDoNotOverlap() {
	seen := map[string][]*Residency{} // by dimensions, and a value of the first of them
	for i := range p.set.Residencies {
		r := &p.set.Residencies[i]
		if p.of(KindResidency, string(r.Metadata.Name)).doc.wasMisread("spec.match") {
			continue
		}
		if len(p.diagnostics) > maxDiagnostics { // each pair could be one: don't look for what isn't shown
			return
		}
		keys := firstValues(r.Spec.Match.dimensions())
		var compared []*Residency
		for _, key := range keys {
			for _, other := range seen[key] {
				if !slices.Contains(compared, other) {
					compared = append(compared, other)
					p.overlap(other, r)
				}
			}
		}
		for _, key := range keys {
			seen[key] = append(seen[key], r)
		}
	}
}

// overlap complains about a rule of the same dimensions as one before it, if a request could match both.
func (p *parsing) overlap(before, r *Residency) {
	var parts []string
	others := before.Spec.Match.dimensions()
	for i, d := range r.Spec.Match.dimensions() {
		both := commonTo(d.values, others[i].values)
		if len(both) == 0 {
			return
		}
		parts = append(parts, d.name+" "+both[0])
	}
	at := p.of(KindResidency, string(before.Metadata.Name)).doc
	p.of(KindResidency, string(r.Metadata.Name)).complain("spec.match", "overlaps Residency %s (%s:%d) on %s: merge the two, or tell them apart",
		before.Metadata.Name, at.file, at.at.line, strings.Join(parts, " and "))
}

// dimension is one of the things that a rule matches on, with the values that match.
type dimension struct {
	name   string
	values []string
}

// dimensions are those that a match constrains, always in the same order.
func (m *ResidencyMatch) dimensions() []dimension {
	all := []dimension{
		{"country", asStrings(m.CountrySet.Countries())}, {"tenant", asStrings(m.Tenants)},
		{"label", asStrings(m.Labels)}, {"service", asStrings(m.Services)},
	}
	given := []int{len(m.Countries), len(m.Tenants), len(m.Labels), len(m.Services)}
	var constrained []dimension
	for i, d := range all {
		if given[i] > 0 {
			constrained = append(constrained, d)
		}
	}
	return constrained
}

// firstValues are keys for the values of the first dimension, the same only for matches on the same dimensions.
func firstValues(dimensions []dimension) []string {
	if len(dimensions) == 0 {
		return nil
	}
	var names []string
	for _, d := range dimensions {
		names = append(names, d.name)
	}
	keys := make([]string, len(dimensions[0].values))
	for i, value := range dimensions[0].values {
		keys[i] = fmt.Sprintf("%s=%s", strings.Join(names, ","), value)
	}
	return keys
}
