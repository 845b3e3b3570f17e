package geo

import (
	"maps"
	"slices"
)

// unions are the built-in jurisdictions of more than one country.
//
// EU: Article 52 TEU, after the withdrawal of the United Kingdom of 2020-02-01: 27 members. EEA: the EU, and Iceland,
// Liechtenstein and Norway by the Agreement on the European Economic Area. Both as of 2026-12.
//
// Members are the states' own codes. A territory with a code of its own (AX, GF, GP, MF, MQ, RE, YT) is no member here,
// although EU law reaches it (Article 355 TFEU): whoever wants it names it beside the union.
var unions = map[string]CountrySet{
	"EU":  NewCountrySet(fields("AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK")...),
	"EEA": NewCountrySet(fields("AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IS IT LI LT LU LV MT NL NO PL PT RO SE SI SK")...),
}

// Jurisdiction is the set of countries that a built-in name stands for: a union (EU, EEA) or a country's code, which
// stands for itself. ok is false for any other name.
func Jurisdiction(name string) (set CountrySet, ok bool) {
	if set, ok = unions[name]; ok {
		return set, true
	}
	if c := Country(name); ValidCountry(c) {
		return NewCountrySet(c), true
	}
	return CountrySet{}, false
}

// Unions are the names of the built-in jurisdictions of more than one country, sorted.
func Unions() []string { return slices.Sorted(maps.Keys(unions)) }
