package geo

import (
	"slices"
	"strings"
)

// Country is an ISO 3166-1 alpha-2 code in upper case; the zero value is unknown.
type Country string

// Place is where an address or a region is, as far as it is known.
type Place struct {
	Country Country
	// Subdivision is an ISO 3166-2 code, as "DE-BE"; empty where it is unknown.
	Subdivision string
	// Point is invalid where only the country is known.
	Point Point
}

// iso3166 has every officially assigned alpha-2 code. Source: ISO 3166-1, as of 2026-12.
const iso3166 = "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ " +
	"CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR " +
	"GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP " +
	"KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ " +
	"NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW " +
	"SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ " +
	"UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW"

var countries = NewCountrySet(fields(iso3166)...)

// Countries are all assigned codes.
func Countries() CountrySet { return countries }

// ValidCountry says whether a code is assigned.
func ValidCountry(c Country) bool { return countries.Contains(c) }

func fields(codes string) []Country {
	var list []Country
	for _, code := range strings.Fields(codes) {
		list = append(list, Country(code))
	}
	return list
}

// CountrySet is an immutable set of countries. The zero value is empty.
type CountrySet struct {
	sorted []Country
}

// NewCountrySet makes a set; a country may be given more than once.
func NewCountrySet(countries ...Country) CountrySet {
	sorted := slices.Sorted(slices.Values(countries))
	return CountrySet{slices.Compact(sorted)}
}

// Contains says whether the set has a country. No set has the unknown one.
func (s CountrySet) Contains(c Country) bool {
	_, ok := slices.BinarySearch(s.sorted, c)
	return ok && c != ""
}

// Countries are the members, sorted, in a slice of the caller's own.
func (s CountrySet) Countries() []Country { return slices.Clone(s.sorted) }

// Empty says whether the set has no member.
func (s CountrySet) Empty() bool { return len(s.sorted) == 0 }

// Union has the members of both.
func (s CountrySet) Union(o CountrySet) CountrySet {
	return NewCountrySet(slices.Concat(s.sorted, o.sorted)...)
}

// Intersect has the members that both have.
func (s CountrySet) Intersect(o CountrySet) CountrySet {
	var both []Country
	for _, c := range s.sorted {
		if o.Contains(c) {
			both = append(both, c)
		}
	}
	return CountrySet{both}
}

// Equal says whether both have the same members.
func (s CountrySet) Equal(o CountrySet) bool { return slices.Equal(s.sorted, o.sorted) }

// String lists the members: "AT,DE".
func (s CountrySet) String() string {
	codes := make([]string, len(s.sorted))
	for i, c := range s.sorted {
		codes[i] = string(c)
	}
	return strings.Join(codes, ",")
}
