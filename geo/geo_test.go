package geo

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func point(t *testing.T, latitude, longitude float64) Point {
	t.Helper()
	p, err := MakePoint(latitude, longitude)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDistanceAgreesWithKnownCityPairs(t *testing.T) {
	cities := map[string]Point{
		"Frankfurt": point(t, 50.11, 8.68), "Dublin": point(t, 53.35, -6.26), "Ashburn": point(t, 39.04, -77.49),
		"Singapore": point(t, 1.35, 103.82), "Sydney": point(t, -33.87, 151.21), "Auckland": point(t, -36.85, 174.76),
	}
	for _, c := range []struct {
		from, to string
		want     float64
	}{
		{"Frankfurt", "Dublin", 1090}, {"Frankfurt", "Ashburn", 6540}, {"Singapore", "Sydney", 6300},
		{"Sydney", "Auckland", 2160}, {"Dublin", "Dublin", 0},
	} {
		got, err := Distance(cities[c.from], cities[c.to])
		if err != nil || math.Abs(float64(got)-c.want) > 0.01*c.want+1 {
			t.Errorf("%s to %s: %.0f km (%v), want about %.0f", c.from, c.to, got, err, c.want)
		}
	}
}

func TestZeroPointIsNowhere(t *testing.T) {
	if (Point{}).Valid() || (Point{}).String() != "nowhere" {
		t.Error("the zero point passes for a place")
	}
	if _, err := Distance(Point{}, point(t, 0, 0)); err == nil {
		t.Error("a distance from nowhere was computed")
	}
	if p := point(t, 0, 0); !p.Valid() || p.Latitude() != 0 || p.Longitude() != 0 {
		t.Errorf("0,0 is a place, got %v", p)
	}
}

func TestMakePointRefusesWhatIsNotOnTheGlobe(t *testing.T) {
	for _, c := range [][2]float64{{91, 0}, {-91, 0}, {0, 181}, {0, -181}, {math.NaN(), 0}, {0, math.NaN()}, {math.Inf(1), 0}} {
		if _, err := MakePoint(c[0], c[1]); err == nil {
			t.Errorf("MakePoint(%v, %v) succeeded", c[0], c[1])
		}
	}
}

func TestEstimateRTTGrowsWithDistance(t *testing.T) {
	if got := EstimateRTT(0); got != time.Millisecond {
		t.Errorf("no distance: %v, want the base of 1ms", got)
	}
	// Frankfurt to Ashburn is measured at about 90 ms in public tables.
	if got := EstimateRTT(6540); got < 80*time.Millisecond || got > 110*time.Millisecond {
		t.Errorf("6540 km: %v, want about 97ms", got)
	}
}

// The list is written out here once more: it decides who may process whose data, and libraries are known to have it
// wrong. Unicode CLDR 48.2 (territoryContainment, EU) has the same 27.
func TestEuropeanUnionHasTwentySevenMembersWithoutTheUnitedKingdom(t *testing.T) {
	eu, _ := Jurisdiction("EU")
	want := "AT,BE,BG,CY,CZ,DE,DK,EE,ES,FI,FR,GR,HR,HU,IE,IT,LT,LU,LV,MT,NL,PL,PT,RO,SE,SI,SK"
	if eu.String() != want || len(eu.Countries()) != 27 || eu.Contains("GB") {
		t.Errorf("EU is %v", eu)
	}
	eea, _ := Jurisdiction("EEA")
	if len(eea.Countries()) != 30 || !eea.Contains("NO") || eea.Contains("CH") || eea.Contains("GB") {
		t.Errorf("EEA is %v", eea)
	}
}

func TestJurisdictionOfACountryIsItself(t *testing.T) {
	if de, ok := Jurisdiction("DE"); !ok || de.String() != "DE" {
		t.Errorf("DE is %v, %v", de, ok)
	}
	for _, name := range []string{"", "UK", "de", "EUU", "XX"} {
		if set, ok := Jurisdiction(name); ok {
			t.Errorf("%q is %v, want not found", name, set)
		}
	}
}

func TestEveryAssignedCountryCodeIsThere(t *testing.T) {
	if n := len(Countries().Countries()); n != 249 {
		t.Errorf("%d codes, ISO 3166-1 assigns 249", n)
	}
	if Countries().Contains("") {
		t.Error("the unknown country is a member")
	}
}

func TestCloudRegionsAreWhereTheyAre(t *testing.T) {
	if n := len(CloudRegions()); n < 290 {
		t.Errorf("%d regions", n)
	}
	for key, want := range map[string]Country{
		"aws/eu-central-1": "DE", "aws/eu-west-2": "GB", "aws/eu-central-2": "CH", "gcp/europe-west2": "GB", "gcp/europe-west6": "CH",
		"gcp/europe-west3": "DE", "azure/westeurope": "NL", "azure/northeurope": "IE", "azure/uksouth": "GB", "oci/eu-zurich-1": "CH",
		"aws/us-east-1": "US", "aws/ap-southeast-1": "SG", "gcp/me-west1": "IL", "azure/norwayeast": "NO",
		"coreweave/EU-NORTH-02": "NO", "coreweave/EU-SOUTH-03": "ES", "coreweave/EU-WEST-02": "GB", "nebius/eu-north1": "FI",
		"lambda/europe-central-1": "DE", "ovh/UK1": "GB", "ovh/BHS5": "CA", "scaleway/fr-par": "FR", "hetzner/hil": "US",
		"digitalocean/lon1": "GB", "oci/uk-cardiff-1": "GB", "oci/eu-jovanovac-1": "RS",
	} {
		if got, ok := LookupCloudRegion(key); !ok || got.Place.Country != want || !got.Place.Point.Valid() {
			t.Errorf("%s is in %q, want %q", key, got.Place.Country, want)
		}
	}
	if _, ok := LookupCloudRegion("aws/eu-nowhere-1"); ok {
		t.Error("an unknown region was found")
	}
}

func TestCloudRegionRowsAreChecked(t *testing.T) {
	for _, row := range []string{
		"a/b", "a/b\tDE\tx\t1\tc\ts\td", "a/b\tDE\t1\tx\tc\ts\td", "a/b\tDE\t99\t1\tc\ts\td", "a/b\tUK\t1\t1\tc\ts\td",
	} {
		if _, err := parseCloudRegion(row); err == nil {
			t.Errorf("%q was accepted", row)
		}
	}
}

// The key is the identity, so a row that is there twice would hide one of two places.
func TestCloudRegionTableHasEachKeyOnceInOrder(t *testing.T) {
	var keys []string
	for line := range strings.Lines(cloudRegionsTSV) {
		if !strings.HasPrefix(line, "#") {
			key, _, _ := strings.Cut(line, "\t")
			keys = append(keys, key)
		}
	}
	if !slices.IsSorted(keys) || len(slices.Compact(slices.Clone(keys))) != len(keys) {
		t.Error("cloudregions.tsv is not sorted by unique keys")
	}
}

func someCountries(t *rapid.T, label string) CountrySet {
	return NewCountrySet(rapid.SliceOf(rapid.SampledFrom(Countries().Countries())).Draw(t, label)...)
}

func TestCountrySetsAreSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := someCountries(t, "a"), someCountries(t, "b")
		union, both := a.Union(b), a.Intersect(b)
		if !union.Equal(b.Union(a)) || !both.Equal(b.Intersect(a)) || !a.Union(both).Equal(a) {
			t.Fatalf("%v and %v: union %v, intersection %v", a, b, union, both)
		}
		for _, c := range Countries().Countries() {
			if union.Contains(c) != (a.Contains(c) || b.Contains(c)) || both.Contains(c) != (a.Contains(c) && b.Contains(c)) {
				t.Fatalf("%s: in %v, in %v, union %v, intersection %v", c, a, b, union, both)
			}
		}
		if both.Empty() != (len(both.Countries()) == 0) {
			t.Fatalf("%v is empty: %v", both, both.Empty())
		}
	})
}

func anywhere(t *rapid.T, label string) Point {
	p, err := MakePoint(rapid.Float64Range(-90, 90).Draw(t, label+" latitude"), rapid.Float64Range(-180, 180).Draw(t, label+" longitude"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDistanceIsAMetricOfAtMostHalfTheGlobe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anywhere(t, "a"), anywhere(t, "b"), anywhere(t, "c")
		ab, _ := Distance(a, b)
		ba, _ := Distance(b, a)
		bc, _ := Distance(b, c)
		ac, _ := Distance(a, c)
		const rounding = 1e-3
		if math.Abs(float64(ab-ba)) > rounding || ac > ab+bc+rounding || ab < 0 || float64(ab) > math.Pi*float64(earthRadius)+rounding {
			t.Fatalf("a to b %v, back %v, b to c %v, a to c %v", ab, ba, bc, ac)
		}
	})
}
