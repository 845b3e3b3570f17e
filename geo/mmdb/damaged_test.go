package mmdb

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// rows that differ, so that the data section has something to point at.
func manyRows() []row {
	return []row{
		{"81.0.0.0/8", berlin}, {"81.2.0.0/16", country("GB")}, {"82.0.0.0/8", country("FR")}, {"2001:db8::/32", country("IE")},
		{"2a02::/32", berlin}, {"5.5.0.0/16", country("NL")},
	}
}

func TestDamagedFilesAreRefused(t *testing.T) {
	whole := germany(t)
	marker := bytes.LastIndex(whole, []byte("\xAB\xCD\xEFMaxMind.com"))
	if marker < 0 {
		t.Fatal("the fixture has no metadata marker")
	}
	zeroed := bytes.Clone(whole)
	clear(zeroed[:marker])
	noTree := whole[marker:]
	asn := fixture(t, "GeoLite2-ASN", 6, row{"81.0.0.0/8", mmdbtype.Map{"autonomous_system_number": mmdbtype.Uint32(64512)}})
	anonymous := fixture(t, "Some-Other-Type", 6, row{"81.0.0.0/8", mmdbtype.Map{"is_vpn": mmdbtype.Bool(true)}})
	numbers := fixture(t, "country ipvAll", 6, row{"81.0.0.0/8", mmdbtype.Map{"country_code": mmdbtype.Uint32(276)}})
	stringCountry := fixture(t, "GeoLite2-Country", 6, row{"81.0.0.0/8", mmdbtype.Map{"country": mmdbtype.String("DE")}})
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "it is empty"},
		{"text", []byte("country,network\nDE,81.0.0.0/8\n"), "it is no whole MaxMind DB file: "},
		{"a gzip that nobody unpacked", []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"), "it is no whole MaxMind DB file: "},
		{"end cut off", whole[:marker], "it is no whole MaxMind DB file: "},
		{"metadata cut off", whole[:marker+40], "it is no whole MaxMind DB file: "},
		{"start cut off", whole[100:], "it is "},
		{"metadata alone", noTree, "it is no whole MaxMind DB file: "},
		{"data of zeroes", zeroed, "it is damaged: "},
		{"another GeoIP2 type", asn, "GeoLite2-ASN"},
		{"without countries", anonymous, `no record of it names a country: its type is "Some-Other-Type"`},
		{"with no network", fixture(t, "GeoLite2-Country", 6), "no record of it names a country"},
		{"country_code is a number", numbers, "its record for 81.0.0.0/8 cannot be read: "},
		{"country is a string", stringCountry, "its record for 81.0.0.0/8 cannot be read: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "country.mmdb")
			if err := os.WriteFile(path, c.data, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := New(Config{Path: path})
			if err == nil || !strings.Contains(err.Error(), "geo database "+path+": ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want the path and %q", err, c.want)
			}
			if _, err := Open(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("in memory: got %v, want %q", err, c.want)
			}
		})
	}
}

func TestMissingAndOddFilesAreRefused(t *testing.T) {
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "absent.mmdb"): "no such file", t.TempDir(): "it is not a regular file",
	} {
		if _, err := New(Config{Path: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// The end of the file says what is in it, so nothing cut off at the end can pass for whole.
func TestFileCutOffAnywhereIsRefused(t *testing.T) {
	whole := fixture(t, "GeoIP2-City", 6, manyRows()...)
	for size := range len(whole) {
		if _, err := Open(whole[:size]); err == nil {
			t.Errorf("%d of %d bytes were accepted", size, len(whole))
		}
	}
}

// A flipped bit may change one valid database into another. But what is accepted must never fail or panic later.
func TestFlippedBitsAreRefusedOrHarmless(t *testing.T) {
	whole := fixture(t, "GeoIP2-City", 6, manyRows()...)
	for i := range whole {
		for _, mask := range []byte{0x01, 0x20, 0x80, 0xff} {
			flipped := bytes.Clone(whole)
			flipped[i] ^= mask
			usable(t, flipped)
		}
	}
}

// usable looks addresses up in what Open accepts.
func usable(t *testing.T, data []byte) {
	db, err := Open(data)
	if err != nil {
		return
	}
	for _, address := range []string{"81.2.69.142", "82.0.0.1", "0.0.0.0", "255.255.255.255", "::", "2001:db8::1", "2a02::1", "2002:5102::1", "ffff::"} {
		for range 2 {
			if _, _, err := db.Lookup(netip.MustParseAddr(address)); err != nil {
				t.Errorf("accepted, but a lookup of %s fails: %v", address, err)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte{})
	f.Add(germany(f))
	f.Add(france(f))
	f.Add(fixture(f, "GeoIP2-City", 6, manyRows()...))
	f.Add(fixture(f, "GeoLite2-Country", 4, row{"81.0.0.0/8", country("DE")}))
	f.Fuzz(func(t *testing.T, data []byte) { usable(t, data) })
}
