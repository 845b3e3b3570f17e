package plan

import (
	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Group names a set of residency rules whose predicate on one dimension of a request (country, tenant or label) holds:
// values that the same rules match are one group. Groups keep the tables in proxies small.
type Group string

// Admission says how what is known of a request becomes a residency class, or a refusal. All slices are sorted by
// their key, and hold only values that some rule names: others are in the Other group.
type Admission struct {
	// Countries maps countries that some rule names; OtherCountry is every other known country, UnknownCountry a
	// client whose country can't be told.
	Countries      []CountryGroup
	OtherCountry   Group
	UnknownCountry Group
	// Tenants maps tenants that some rule names; OtherTenant is every other, and requests without.
	Tenants     []TenantGroup
	OtherTenant Group
	// Labels maps data labels that some rule names; OtherLabel is every other, and requests without.
	Labels     []LabelGroup
	OtherLabel Group
	// Outcomes has, for each service, one entry for every combination of a country group, a tenant group and a
	// label group, sorted by service, country, tenant, label.
	Outcomes []Outcome
}

// CountryGroup is the group of one country.
type CountryGroup struct {
	Country geo.Country
	Group   Group
}

// TenantGroup is the group of one tenant.
type TenantGroup struct {
	Tenant policies.Tenant
	Group  Group
}

// LabelGroup is the group of one data label.
type LabelGroup struct {
	Label policies.DataLabel
	Group Group
}

// Outcome is what becomes of a request for Service whose country, tenant and label are in these groups.
type Outcome struct {
	Service                policies.ServiceName
	Country, Tenant, Label Group
	// Class is the residency class; empty where Refusal is set.
	Class world.ClassID
	// Refusal says why the request is refused; nil where it is not.
	Refusal *Reason
}
