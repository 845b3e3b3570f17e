// Package mmdb says where an address is, by a MaxMind DB file.
//
//	db, err := mmdb.New(mmdb.Config{Path: "/etc/meridian/country.mmdb"})
//	if err != nil {
//		return err
//	}
//	go db.Run(ctx)
//	place, network, err := db.Lookup(netip.MustParseAddr("192.0.2.7"))
//
// It serves whoever must place a client outside of Envoy: the ext_authz service, and the command that explains a
// decision. It reads GeoIP2 and GeoLite2 databases of the Country and City kind, and the flat records (country_code) of
// open databases. A country that ISO 3166-1 does not have, an address that is in no network, IPv6 in a database that has
// IPv4 only: all are the unknown place and no error, so that the caller's rule for unknown locations decides.
//
// A lookup walks the search tree, and decodes the record only if the place of that network is not in the cache. With
// MaxMind's records that halves the time; with flat ones it saves the allocation.
//
// The file is read into memory, checked whole and only then swapped in with a cache of its own: a lookup sees the old
// database or the new one, never half of each, and a broken file changes nothing.
//
// Everything but Run may be called from any number of goroutines at once.
package mmdb
