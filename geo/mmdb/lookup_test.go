package mmdb

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"github.com/meridian-mesh/meridian/geo"
)

func opened(t testing.TB, data []byte) *Database {
	t.Helper()
	db, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestLookup(t *testing.T) {
	point, err := geo.MakePoint(52.52, 13.41)
	if err != nil {
		t.Fatal(err)
	}
	inBerlin := geo.Place{Country: "DE", Subdivision: "DE-BE", Point: point}
	flatBerlin := mmdbtype.Map{"country_code": mmdbtype.String("DE"), "latitude": mmdbtype.Float32(52.5), "longitude": mmdbtype.Float32(13.5)}
	flatPoint, err := geo.MakePoint(52.5, 13.5)
	if err != nil {
		t.Fatal(err)
	}
	registered := mmdbtype.Map{"registered_country": mmdbtype.Map{"iso_code": mmdbtype.String("US")}}
	offTheGlobe := mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String("FR")},
		"location": mmdbtype.Map{"latitude": mmdbtype.Float64(123), "longitude": mmdbtype.Float64(0)}}
	city := fixture(t, "GeoIP2-City", 6, row{"81.2.69.0/24", berlin}, row{"2a02::/32", berlin}, row{"5.0.0.0/8", offTheGlobe})
	countries := fixture(t, "GeoIP2-Country", 6,
		row{"81.0.0.0/8", country("DE")}, row{"81.2.0.0/16", country("GB")}, row{"2001:db8::/32", country("FR")},
		row{"127.0.0.0/8", country("IE")}, row{"77.0.0.0/8", registered}, row{"78.0.0.0/8", country("XK")}, row{"79.0.0.0/8", country("de")})
	open := fixture(t, "country ipvAll", 6, row{"81.0.0.0/8", flat("DE")}, row{"2001:db8::/32", flat("FR")}, row{"5.0.0.0/8", flat("EU")})
	four := fixture(t, "GeoLite2-Country", 4, row{"81.0.0.0/8", country("DE")})
	flatCity := fixture(t, "city ipv4", 4, row{"81.0.0.0/8", flatBerlin})

	for _, c := range []struct {
		name, address string
		data          []byte
		want          geo.Place
		network       string
	}{
		{"city", "81.2.69.142", city, inBerlin, "81.2.69.0/24"},
		{"city, IPv6", "2a02::1", city, inBerlin, "2a02::/32"},
		{"a point off the globe is no point", "5.1.1.1", city, geo.Place{Country: "FR"}, "5.0.0.0/8"},
		{"country", "81.3.0.1", countries, geo.Place{Country: "DE"}, "81.3.0.0/16"},
		{"the more specific network", "81.2.0.1", countries, geo.Place{Country: "GB"}, "81.2.0.0/16"},
		{"country, IPv6", "2001:db8::1", countries, geo.Place{Country: "FR"}, "2001:db8::/32"},
		{"IPv4 mapped into IPv6", "::ffff:81.2.0.1", countries, geo.Place{Country: "GB"}, "81.2.0.0/16"},
		{"a zone says nothing", "2001:db8::1%eth0", countries, geo.Place{Country: "FR"}, "2001:db8::/32"},
		{"loopback that the database has", "127.0.0.1", countries, geo.Place{Country: "IE"}, "127.0.0.0/8"},
		{"where it is registered is not where it is", "77.1.1.1", countries, geo.Place{}, "77.0.0.0/8"},
		{"no country of ISO 3166-1", "78.1.1.1", countries, geo.Place{}, "78.0.0.0/8"},
		{"no code in lower case", "79.1.1.1", countries, geo.Place{}, "79.0.0.0/8"},
		{"private", "10.1.2.3", countries, geo.Place{}, "0.0.0.0/2"},
		{"unspecified", "0.0.0.0", countries, geo.Place{}, "0.0.0.0/2"},
		{"flat", "81.2.69.142", open, geo.Place{Country: "DE"}, "81.0.0.0/8"},
		{"flat, IPv6", "2001:db8::1", open, geo.Place{Country: "FR"}, "2001:db8::/32"},
		{"flat, a union is no country", "5.1.1.1", open, geo.Place{}, "5.0.0.0/8"},
		{"flat city", "81.2.69.142", flatCity, geo.Place{Country: "DE", Point: flatPoint}, "81.0.0.0/8"},
		{"IPv4 only", "81.2.69.142", four, geo.Place{Country: "DE"}, "81.0.0.0/8"},
		{"IPv4 only, mapped", "::ffff:81.2.69.142", four, geo.Place{Country: "DE"}, "81.0.0.0/8"},
		{"IPv4 only, asked for IPv6", "2001:db8::1", four, geo.Place{}, "::/0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := opened(t, c.data)
			for _, source := range []string{"decoded", "cached"} {
				place, network, err := db.Lookup(netip.MustParseAddr(c.address))
				if err != nil || network.String() != c.network {
					t.Errorf("%s: network %v, %v; want %v", source, network, err, c.network)
				}
				if diff := cmp.Diff(c.want, place, cmp.Comparer(func(a, b geo.Point) bool { return a == b })); diff != "" {
					t.Errorf("%s (-want +got):\n%s", source, diff)
				}
			}
		})
	}
}

func TestLookupOfNoAddressIsAnError(t *testing.T) {
	if _, _, err := opened(t, germany(t)).Lookup(netip.Addr{}); err == nil || !strings.Contains(err.Error(), "the address is not set") {
		t.Errorf("got %v", err)
	}
}

func TestInfoDescribesTheDatabase(t *testing.T) {
	got := opened(t, fixture(t, "GeoIP2-City", 4, row{"81.0.0.0/8", berlin})).Info()
	if got.Type != "GeoIP2-City" || got.IPVersion != 4 || got.Built.Unix() != built || got.Path != "" || got.Demo {
		t.Errorf("got %+v", got)
	}
}

// One decoding serves a whole network, and the cache stays as small as it was told to.
func TestCacheIsKeyedByNetworkAndBounded(t *testing.T) {
	data := fixture(t, "GeoLite2-Country", 6, row{"81.0.0.0/16", country("DE")}, row{"82.0.0.0/16", country("FR")}, row{"83.0.0.0/16", country("IT")})
	config, err := Config{CacheSize: 2}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	db, err := open(data, config)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		address string
		want    Stats
	}{
		{"81.0.0.1", Stats{Misses: 1, Entries: 1}},
		{"81.0.255.9", Stats{Hits: 1, Misses: 1, Entries: 1}},
		{"82.0.0.1", Stats{Hits: 1, Misses: 2, Entries: 2}},
		{"81.0.7.7", Stats{Hits: 2, Misses: 2, Entries: 2}},
		{"83.0.0.1", Stats{Hits: 2, Misses: 3, Entries: 2}},
		{"81.0.0.1", Stats{Hits: 3, Misses: 3, Entries: 2}}, // used last but one, so it stayed
		{"82.0.0.1", Stats{Hits: 3, Misses: 4, Entries: 2}}, // least lately used, so it went
		{"9.9.9.9", Stats{Hits: 3, Misses: 4, Entries: 2}},  // in no network: there is nothing to decode
	} {
		if _, _, err := db.Lookup(netip.MustParseAddr(step.address)); err != nil {
			t.Fatal(err)
		}
		if got := db.Stats(); got != step.want {
			t.Errorf("after %s: %+v, want %+v", step.address, got, step.want)
		}
	}
}

func TestConfigRefusesNegativeNumbers(t *testing.T) {
	for _, c := range []Config{{CacheSize: -1}, {PollInterval: -1}} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), "must not be negative") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
