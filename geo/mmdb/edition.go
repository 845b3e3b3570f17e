package mmdb

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/oschwald/maxminddb-golang/v2"
)

// edition is one version of the database with its cache, which lives and dies with it.
type edition struct {
	info   Info
	reader *maxminddb.Reader
	decode decoder
	cache  *cache
}

// newEdition checks all of the data, so that a lookup in what it returns cannot fail.
func newEdition(data []byte, config Config) (*edition, error) {
	if len(data) == 0 {
		return nil, errors.New("it is empty")
	}
	reader, err := maxminddb.OpenBytes(data)
	if err != nil {
		return nil, fmt.Errorf("it is no whole MaxMind DB file: %w", err)
	}
	decode, err := decoderFor(data, reader.Metadata.DatabaseType)
	if err != nil {
		return nil, err
	}
	if err := check(reader, decode); err != nil {
		return nil, err
	}
	cache, err := newCache(config.CacheSize)
	if err != nil {
		return nil, err
	}
	return &edition{info: infoOf(reader.Metadata, config.Path), reader: reader, decode: decode, cache: cache}, nil
}

func infoOf(m maxminddb.Metadata, path string) Info {
	return Info{
		Path: path, Type: m.DatabaseType, Built: m.BuildTime().UTC(), IPVersion: int(m.IPVersion),
		Demo: m.Description["en"] == demoDescription,
	}
}

// failed names the network and not the address: addresses are of people and do not belong in logs.
func (e *edition) failed(network netip.Prefix, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("geo lookup in %s (%s): %w", network, e.info.Type, err)
}

// check refuses a database with a broken tree or record, and one that places nobody.
func check(reader *maxminddb.Reader, decode decoder) error {
	// Open databases leave the description out. The format forbids it, but it harms nobody.
	if len(reader.Metadata.Description) == 0 {
		reader.Metadata.Description = map[string]string{"en": "no description"}
	}
	if err := reader.Verify(); err != nil {
		return fmt.Errorf("it is damaged: %w", err)
	}
	return checkPlaces(reader, decode)
}

// checkPlaces decodes each record once. Verify has found the tree to be sound, but a tree whose nodes are reached on
// many ways could have more networks than there is time: a sound one of n nodes has n+1, and writers repeat the IPv4
// part a few times within IPv6.
func checkPlaces(reader *maxminddb.Reader, decode decoder) error {
	budget := 8 * (reader.Metadata.NodeCount + 1)
	seen, placed := map[uintptr]struct{}{}, false
	for result := range reader.Networks(maxminddb.IncludeAliasedNetworks(), maxminddb.IncludeNetworksWithoutData()) {
		if budget--; budget == 0 {
			return errors.New("it is damaged: its search tree reaches the same nodes over and over")
		}
		if _, done := seen[result.Offset()]; done || !result.Found() && result.Err() == nil {
			continue
		}
		seen[result.Offset()] = struct{}{}
		place, err := decode(result.Prefix().Addr(), result)
		if err != nil {
			return fmt.Errorf("its record for %s cannot be read: %w", result.Prefix(), err)
		}
		placed = placed || place.Country != ""
	}
	if !placed {
		return fmt.Errorf("no record of it names a country: its type is %q, and what is needed is GeoIP2 or GeoLite2 Country or City, "+
			"or a database with country_code", reader.Metadata.DatabaseType)
	}
	return nil
}
