package geo

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// CloudRegion is one region of a large cloud or of a GPU cloud.
type CloudRegion struct {
	// Key is "provider/region", as "aws/eu-central-1".
	Key   string
	Place Place
	// City is the place as the provider names it, for people.
	City string
	// Source says where the row was taken from, AsOf the month of that source: "2026-12".
	Source, AsOf string
}

//go:embed cloudregions.tsv
var cloudRegionsTSV string

var cloudRegions = mustParseCloudRegions(cloudRegionsTSV)

// LookupCloudRegion finds a region by key. ok is false for one that is not in the table: its country is not known, and
// nothing may be assumed about it.
func LookupCloudRegion(key string) (region CloudRegion, ok bool) {
	region, ok = cloudRegions[key]
	return region, ok
}

// CloudRegions are all regions in the table, sorted by key.
func CloudRegions() []CloudRegion {
	return slices.SortedFunc(maps.Values(cloudRegions), func(a, b CloudRegion) int { return strings.Compare(a.Key, b.Key) })
}

// mustParseCloudRegions panics on a bad row: the table is part of the program, and a test reads it.
func mustParseCloudRegions(tsv string) map[string]CloudRegion {
	regions := map[string]CloudRegion{}
	for n, line := range strings.Split(strings.TrimSpace(tsv), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		region, err := parseCloudRegion(line)
		if err != nil {
			panic(fmt.Sprintf("geo: cloudregions.tsv:%d: %s", n+1, err.Error()))
		}
		regions[region.Key] = region
	}
	return regions
}

func parseCloudRegion(line string) (CloudRegion, error) {
	f := strings.Split(line, "\t")
	if len(f) != 7 {
		return CloudRegion{}, fmt.Errorf("%d fields, want 7", len(f))
	}
	latitude, err := strconv.ParseFloat(f[2], 64)
	if err != nil {
		return CloudRegion{}, fmt.Errorf("latitude: %w", err)
	}
	longitude, err := strconv.ParseFloat(f[3], 64)
	if err != nil {
		return CloudRegion{}, fmt.Errorf("longitude: %w", err)
	}
	point, err := MakePoint(latitude, longitude)
	if err != nil {
		return CloudRegion{}, err
	}
	if !ValidCountry(Country(f[1])) {
		return CloudRegion{}, fmt.Errorf("country %q is not in ISO 3166-1", f[1])
	}
	place := Place{Country: Country(f[1]), Point: point}
	return CloudRegion{Key: f[0], Place: place, City: f[4], Source: f[5], AsOf: f[6]}, nil
}
