package mmdb

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/oschwald/geoip2-golang/v2"
	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/meridian-mesh/meridian/geo"
)

// decoder makes a place of the record that a lookup of the address has found.
type decoder func(addr netip.Addr, found maxminddb.Result) (geo.Place, error)

// decoderFor takes geoip2 where it knows the type, and the flat record otherwise. Both read the same bytes.
func decoderFor(data []byte, databaseType string) (decoder, error) {
	reader, err := geoip2.OpenBytes(data)
	if _, unknown := errors.AsType[geoip2.UnknownDatabaseTypeError](err); unknown {
		return decodeFlat, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading it as %q: %w", databaseType, err)
	}
	return func(addr netip.Addr, _ maxminddb.Result) (geo.Place, error) { return decodeGeoIP2(reader, addr) }, nil
}

// decodeGeoIP2 reads where the address is. Where it is registered (registered_country) is not where the client is, and
// a record that has only that is of an unknown place. A Country database is read as a City one without cities.
func decodeGeoIP2(reader *geoip2.Reader, addr netip.Addr) (geo.Place, error) {
	record, err := reader.City(addr)
	if err != nil {
		return geo.Place{}, fmt.Errorf("decoding a GeoIP2 record: %w", err)
	}
	p := placeOf(record.Country.ISOCode, record.Location.Latitude, record.Location.Longitude)
	if p.Country != "" && len(record.Subdivisions) > 0 && record.Subdivisions[0].ISOCode != "" {
		p.Subdivision = record.Country.ISOCode + "-" + record.Subdivisions[0].ISOCode
	}
	return p, nil
}

// flatRecord is what open databases have in one level.
type flatRecord struct {
	CountryCode string   `maxminddb:"country_code"`
	Latitude    *float64 `maxminddb:"latitude"`
	Longitude   *float64 `maxminddb:"longitude"`
}

func decodeFlat(_ netip.Addr, found maxminddb.Result) (geo.Place, error) {
	var record flatRecord
	if err := found.Decode(&record); err != nil {
		return geo.Place{}, fmt.Errorf("decoding a flat record: %w", err)
	}
	return placeOf(record.CountryCode, record.Latitude, record.Longitude), nil
}

// placeOf is unknown for a code that ISO 3166-1 does not have, as "EU" or "XK": it is in no jurisdiction. A point that
// is not on the globe is left out.
func placeOf(country string, latitude, longitude *float64) geo.Place {
	p := geo.Place{Country: geo.Country(country)}
	if !geo.ValidCountry(p.Country) {
		return geo.Place{}
	}
	if latitude != nil && longitude != nil {
		p.Point, _ = geo.MakePoint(*latitude, *longitude)
	}
	return p
}
