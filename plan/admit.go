package plan

import (
	"cmp"
	"slices"

	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Admit says what becomes of a request for a service: its class, or why it is refused. country is empty where it can't
// be told; tenant and label are empty for requests without. For a service that the policies do not name the outcome
// has neither class nor refusal.
func (a *Admission) Admit(service policies.ServiceName, country geo.Country, tenant policies.Tenant, label policies.DataLabel) Outcome {
	asked := Outcome{Service: service, Country: a.OtherCountry, Tenant: a.OtherTenant, Label: a.OtherLabel}
	if country == "" {
		asked.Country = a.UnknownCountry
	} else if i, ok := slices.BinarySearchFunc(a.Countries, country, func(g CountryGroup, c geo.Country) int { return cmp.Compare(g.Country, c) }); ok {
		asked.Country = a.Countries[i].Group
	}
	if i, ok := slices.BinarySearchFunc(a.Tenants, tenant, func(g TenantGroup, t policies.Tenant) int { return cmp.Compare(g.Tenant, t) }); ok {
		asked.Tenant = a.Tenants[i].Group
	}
	if i, ok := slices.BinarySearchFunc(a.Labels, label, func(g LabelGroup, l policies.DataLabel) int { return cmp.Compare(g.Label, l) }); ok {
		asked.Label = a.Labels[i].Group
	}
	if i, ok := slices.BinarySearchFunc(a.Outcomes, asked, compareOutcomes); ok {
		return a.Outcomes[i]
	}
	return asked
}

// OutcomesOf are the outcomes of one service.
func (a *Admission) OutcomesOf(service policies.ServiceName) []Outcome {
	lo, _ := slices.BinarySearchFunc(a.Outcomes, service, func(o Outcome, s policies.ServiceName) int { return cmp.Compare(o.Service, s) })
	hi := lo
	for hi < len(a.Outcomes) && a.Outcomes[hi].Service == service {
		hi++
	}
	return a.Outcomes[lo:hi:hi]
}

// Classes are the classes that requests for a service can have, sorted.
func (a *Admission) Classes(service policies.ServiceName) []world.ClassID {
	var classes []world.ClassID
	for _, o := range a.OutcomesOf(service) {
		if o.Refusal == nil {
			classes = append(classes, o.Class)
		}
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

func compareOutcomes(a, b Outcome) int {
	return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Country, b.Country),
		cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Label, b.Label))
}
