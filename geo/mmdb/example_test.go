package mmdb_test

import (
	"fmt"
	"net/netip"

	"github.com/meridian-mesh/meridian/geo/mmdb"
)

func ExampleDatabase_Lookup() {
	db, err := mmdb.New(mmdb.Config{}) // the embedded demo database
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, address := range []string{"192.0.2.7", "2001:db8:1::7", "198.18.0.7"} {
		place, network, err := db.Lookup(netip.MustParseAddr(address))
		fmt.Printf("%q %v %v\n", place.Country, network, err)
	}
	fmt.Println("fit for a demo only:", db.Info().Demo)
	// Output:
	// "DE" 192.0.2.0/24 <nil>
	// "FR" 2001:db8:1::/48 <nil>
	// "" 198.18.0.0/24 <nil>
	// fit for a demo only: true
}
