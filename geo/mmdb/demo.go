package mmdb

import (
	_ "embed"
	"fmt"
	"os"
	"slices"
)

// demoDatabase is made of testdata/demo.csv, which says what is in it and where that is from.
//
//go:generate go test -run TestDemoDatabaseIsItsTable -update .
//go:embed demo.mmdb
var demoDatabase []byte

// demoDescription marks the demo database wherever it turns up.
const demoDescription = "Meridian demo database: incomplete and partly invented, never for residency of real clients"

// DemoBytes is the embedded demo database, in MaxMind's GeoLite2-Country shape, in a slice of the caller's own.
func DemoBytes() []byte { return slices.Clone(demoDatabase) }

// WriteDemo writes the demo database to a file, for an Envoy of a demo to read.
func WriteDemo(path string) error {
	if err := os.WriteFile(path, demoDatabase, 0o644); err != nil {
		return fmt.Errorf("writing the demo geo database: %w", err)
	}
	return nil
}
