package build

import (
	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// dimension is one thing that is known of a request and that residency rules may match: which header says it, and which
// group its values are in.
type dimension struct {
	name string
	// header says the value, groupHeader is set to its group.
	header, groupHeader string
	// groups are the values that rules tell apart; other is every other value, absent no value at all.
	groups        map[string]string
	other, absent string
	// of is the dimension's group in an outcome.
	of func(plan.Outcome) plan.Group
}

// foreign is the group of tenants that the proxies may not serve. No outcome has it.
const foreign = "!"

// only is the dimension of tenants for proxies that may serve just some.
func (d dimension) only(tenants world.Tenants) dimension {
	all := d.groups
	d.groups = map[string]string{}
	for _, t := range tenants.List() {
		group, told := all[string(t)]
		if !told {
			group = d.other
		}
		d.groups[string(t)] = group
	}
	d.other, d.absent = foreign, foreign
	return d
}

// dimensions are country, tenant and label, in this order, for proxies that may serve some tenants.
func dimensions(g *policies.Gateway, a *plan.Admission, tenants world.Tenants) [3]dimension {
	country := dimension{name: "country", header: xds.HeaderCountry, groupHeader: xds.HeaderCountryGroup, groups: map[string]string{},
		other: string(a.OtherCountry), absent: string(a.UnknownCountry), of: func(o plan.Outcome) plan.Group { return o.Country }}
	for _, e := range a.Countries {
		country.groups[string(e.Country)] = string(e.Group)
	}
	tenant := dimension{name: "tenant", header: g.Spec.TenantHeader, groupHeader: xds.HeaderTenantGroup, groups: map[string]string{},
		other: string(a.OtherTenant), absent: string(a.OtherTenant), of: func(o plan.Outcome) plan.Group { return o.Tenant }}
	for _, e := range a.Tenants {
		tenant.groups[string(e.Tenant)] = string(e.Group)
	}
	if tenants != world.AllTenants {
		tenant = tenant.only(tenants)
	}
	label := dimension{name: "label", header: g.Spec.DataLabelHeader, groupHeader: xds.HeaderLabelGroup, groups: map[string]string{},
		other: string(a.OtherLabel), absent: string(a.OtherLabel), of: func(o plan.Outcome) plan.Group { return o.Label }}
	for _, e := range a.Labels {
		label.groups[string(e.Label)] = string(e.Group)
	}
	return [3]dimension{country, tenant, label}
}
