package mmdb

import (
	"bytes"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter"

	"github.com/meridian-mesh/meridian/geo"
)

var update = flag.Bool("update", false, "write demo.mmdb anew from testdata/demo.csv")

// GeoLite2-Country is the name by which readers know the shape; the description says what it really is.
func TestDemoDatabaseIsItsTable(t *testing.T) {
	want := write(t, mmdbwriter.Options{
		DatabaseType: "GeoLite2-Country", BuildEpoch: built, IncludeReservedNetworks: true, RecordSize: 24,
		Description: map[string]string{"en": demoDescription}, Languages: []string{"en"},
	}, demoRows(t))
	if *update {
		if err := os.WriteFile("demo.mmdb", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(demoDatabase, want) {
		t.Error("demo.mmdb is not what testdata/demo.csv says: run go generate ./geo/mmdb")
	}
	if size := len(want); size > 300<<10 {
		t.Errorf("it has %d bytes, which every binary carries", size)
	}
}

func TestDemoDatabasePlacesThePlayedClients(t *testing.T) {
	db, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]geo.Country{
		"192.0.2.1": "DE", "198.51.100.1": "US", "203.0.113.1": "SG", "2001:db8:1::1": "FR", "198.18.1.1": "FR",
		"127.10.0.1": "DE", "127.20.0.1": "US", "127.30.0.1": "SG", "8.8.8.8": "US", "133.11.0.1": "JP",
		"127.0.0.1": "", "::1": "", "10.0.0.1": "", "192.168.1.1": "", "0.0.0.0": "", "::": "", "198.18.0.1": "", "fe80::1": "",
	} {
		if place, network, err := db.Lookup(netip.MustParseAddr(address)); err != nil || place.Country != want {
			t.Errorf("%s is in %q (%v, %v), want %q", address, place.Country, network, err, want)
		}
	}
}

// Whoever serves with the demo database must be able to tell, also when it came as a file.
func TestDemoDatabaseSaysThatItIsOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.mmdb")
	if err := WriteDemo(path); err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]Config{"embedded": {}, "as a file": {Path: path}} {
		if db, err := New(config); err != nil || !db.Info().Demo {
			t.Errorf("%s: %v, %v", name, db, err)
		}
	}
	if db, err := Open(DemoBytes()); err != nil || !db.Info().Demo {
		t.Errorf("from its bytes: %v, %v", db, err)
	}
	if db, err := Open(germany(t)); err != nil || db.Info().Demo {
		t.Errorf("another database passes for the demo: %v, %v", db, err)
	}
	if err := WriteDemo(filepath.Join(path, "nowhere")); err == nil || !strings.Contains(err.Error(), "writing the demo geo database") {
		t.Errorf("writing below a file: %v", err)
	}
}
