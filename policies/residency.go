package policies

import "github.com/meridian-mesh/meridian/geo"

// Residency pins who or what it matches inside a boundary. Where several match one request, the boundary is the
// intersection of theirs; an empty one refuses the request.
type Residency struct {
	Metadata Metadata[ResidencyName] `json:"metadata"`
	Spec     ResidencySpec           `json:"spec"`
	Origin   Origin                  `json:"-"`
}

// ResidencySpec says what is pinned where.
type ResidencySpec struct {
	// Match says what is pinned. All the fields given must match; within a field, one value must.
	Match ResidencyMatch `json:"match"`
	// Within is the boundary: the union of regions in these jurisdictions. Each is a union (EU, EEA), a country
	// code (DE), a name from this or another rule's Jurisdictions or a Region's, or "region/NAME" for one region.
	Within []string `json:"within" jsonschema:"minItems=1,uniqueItems=true"`
	// UnknownLocation says what happens to a client whose country can't be told, where Match names countries.
	// Default Refuse.
	UnknownLocation UnknownLocation `json:"unknownLocation,omitempty"`
	// Jurisdictions define named sets of countries, for `within` and `match.countries` of every rule.
	Jurisdictions []CustomJurisdiction `json:"jurisdictions,omitempty"`
}

// ResidencyMatch says what a rule pins: at least one field must be given.
type ResidencyMatch struct {
	// Countries are client locations: country codes, unions or custom jurisdictions.
	Countries []string `json:"countries,omitempty" jsonschema:"uniqueItems=true"`
	// Tenants are calling organisations.
	Tenants []Tenant `json:"tenants,omitempty" jsonschema:"uniqueItems=true"`
	// Labels are the data labels that a request may carry.
	Labels []DataLabel `json:"labels,omitempty" jsonschema:"uniqueItems=true"`
	// Services are those whose licence or data binds every request to them.
	Services []ServiceName `json:"services,omitempty" jsonschema:"uniqueItems=true"`

	// CountrySet is Countries resolved, in every parsed Set.
	CountrySet geo.CountrySet `json:"-"`
}

// CustomJurisdiction is a named set of countries.
type CustomJurisdiction struct {
	// Name is not a country code nor a built-in union.
	Name string `json:"name" jsonschema:"minLength=1"`
	// Countries are country codes or built-in unions.
	Countries []string `json:"countries" jsonschema:"minItems=1,uniqueItems=true"`

	// CountrySet is Countries resolved, in every parsed Set.
	CountrySet geo.CountrySet `json:"-"`
}

// UnknownLocation says what an unknown client location means to a rule.
type UnknownLocation string

// What an unknown location can mean.
const (
	// UnknownRefuse refuses the request. The default.
	UnknownRefuse UnknownLocation = "Refuse"
	// UnknownPin pins the request as if its country matched.
	UnknownPin UnknownLocation = "Pin"
	// UnknownIgnore treats the request as if its country did not match. It gives up the guarantee for clients
	// whose address is in no database.
	UnknownIgnore UnknownLocation = "Ignore"
)
