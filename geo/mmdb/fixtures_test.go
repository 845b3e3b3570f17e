package mmdb

import (
	"bufio"
	"bytes"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
	"go.uber.org/goleak"

	"github.com/meridian-mesh/meridian/geo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// row is one network of a fixture, and its record.
type row struct {
	network string
	record  mmdbtype.DataType
}

// built is 2026-10-01, so that the same fixture has the same bytes each time.
const built = 1790812800

// fixture writes a database of a type with the rows, in the given IP version; later rows win.
func fixture(t testing.TB, databaseType string, ipVersion int, rows ...row) []byte {
	t.Helper()
	return write(t, mmdbwriter.Options{
		DatabaseType: databaseType, IPVersion: ipVersion, BuildEpoch: built, IncludeReservedNetworks: true,
		Description: map[string]string{"en": "a fixture"}, RecordSize: 24,
	}, rows)
}

func write(t testing.TB, options mmdbwriter.Options, rows []row) []byte {
	t.Helper()
	tree, err := mmdbwriter.New(options)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		_, network, err := net.ParseCIDR(r.network)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Insert(network, r.record); err != nil {
			t.Fatalf("%s: %v", r.network, err)
		}
	}
	var data bytes.Buffer
	if _, err := tree.WriteTo(&data); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

// country is a record of a GeoIP2 Country database.
func country(code string) mmdbtype.Map {
	return mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String(code)}}
}

// flat is a record of an open country database.
func flat(code string) mmdbtype.Map { return mmdbtype.Map{"country_code": mmdbtype.String(code)} }

// berlin is a record of a GeoIP2 City database.
var berlin = mmdbtype.Map{
	"city":         mmdbtype.Map{"names": mmdbtype.Map{"en": mmdbtype.String("Berlin")}},
	"country":      mmdbtype.Map{"iso_code": mmdbtype.String("DE"), "names": mmdbtype.Map{"en": mmdbtype.String("Germany")}},
	"location":     mmdbtype.Map{"latitude": mmdbtype.Float64(52.52), "longitude": mmdbtype.Float64(13.41)},
	"subdivisions": mmdbtype.Slice{mmdbtype.Map{"iso_code": mmdbtype.String("BE")}},
}

// germany is a small valid database in which 81.0.0.0/8 is in Germany.
func germany(t testing.TB) []byte {
	return fixture(t, "GeoLite2-Country", 6, row{"81.0.0.0/8", country("DE")})
}

// france is the same, but in France.
func france(t testing.TB) []byte {
	return fixture(t, "country ipvAll", 6, row{"81.0.0.0/8", flat("FR")})
}

func open81(t testing.TB, db *Database) geo.Country {
	t.Helper()
	place, _, err := db.Lookup(netip.MustParseAddr("81.2.69.142"))
	if err != nil {
		t.Fatal(err)
	}
	return place.Country
}

// replace puts a file in place of another as publishers and editors do: write aside, then rename.
func replace(t testing.TB, path string, data []byte) {
	t.Helper()
	aside := filepath.Join(filepath.Dir(path), "aside")
	if err := os.WriteFile(aside, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, path); err != nil {
		t.Fatal(err)
	}
}

// demoRows reads the table that the demo database is made of.
func demoRows(t testing.TB) []row {
	t.Helper()
	file, err := os.Open("testdata/demo.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var rows []row
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if network, code, ok := strings.Cut(lines.Text(), ","); ok && !strings.HasPrefix(network, "#") {
			rows = append(rows, row{network, country(code)})
		}
	}
	return rows
}
