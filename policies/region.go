package policies

import "github.com/meridian-mesh/meridian/geo"

// Region is a place where clusters are: one point on the map, under one country's law.
type Region struct {
	Metadata Metadata[RegionName] `json:"metadata"`
	Spec     RegionSpec           `json:"spec"`
	Origin   Origin               `json:"-"`
}

// RegionSpec says where the region is. Either Cloud, or Country and Location, must be given.
type RegionSpec struct {
	// Cloud takes place and country from the built-in table of the clouds' regions, as "aws/eu-central-1".
	Cloud string `json:"cloud,omitempty"`
	// Country is the ISO 3166-1 alpha-2 code of the country whose law holds here. With Cloud it must agree.
	Country geo.Country `json:"country,omitempty"`
	// Location is the region's point on the map. With Cloud it is taken from the table unless given.
	Location *Location `json:"location,omitempty"`
	// Jurisdictions are further names that hold here besides the country and its unions, such as a
	// sovereign-cloud scheme. Residency rules may name them in `within`.
	Jurisdictions []string `json:"jurisdictions,omitempty" jsonschema:"uniqueItems=true"`

	// Place is Country and Location resolved, valid in every parsed Set.
	Place geo.Place `json:"-"`
}

// Location is a point in degrees.
type Location struct {
	// Latitude in degrees, -90 to 90.
	Latitude float64 `json:"latitude" jsonschema:"minimum=-90,maximum=90"`
	// Longitude in degrees, -180 to 180.
	Longitude float64 `json:"longitude" jsonschema:"minimum=-180,maximum=180"`
}
