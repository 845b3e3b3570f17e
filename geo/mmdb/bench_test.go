package mmdb

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"

	"github.com/maxmind/mmdbwriter/mmdbtype"
	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/meridian-mesh/meridian/geo"
)

// benchNetworks is about what an open country database has of IPv4 networks.
const benchNetworks = 200_000

// shapes are made once a run: the same networks in MaxMind's shape, with names in several languages as there, and flat.
var shapes = map[string]func(testing.TB) []byte{
	"GeoIP2": memo("GeoLite2-Country", named),
	"flat":   memo("country ipvAll", flat),
}

func memo(databaseType string, record func(string) mmdbtype.Map) func(testing.TB) []byte {
	var once sync.Once
	var data []byte
	return func(t testing.TB) []byte {
		once.Do(func() {
			codes := geo.Countries().Countries()
			rows := make([]row, benchNetworks)
			for i := range rows {
				rows[i] = row{netip.PrefixFrom(benchAddr(i), 24).String(), record(string(codes[i%len(codes)]))}
			}
			data = fixture(t, databaseType, 6, rows...)
		})
		return data
	}
}

func named(code string) mmdbtype.Map {
	names := mmdbtype.Map{}
	for _, language := range []mmdbtype.String{"de", "en", "es", "fr", "ja", "pt-BR", "ru", "zh-CN"} {
		names[language] = "the country " + mmdbtype.String(code) + " in " + language
	}
	place := mmdbtype.Map{"iso_code": mmdbtype.String(code), "geoname_id": mmdbtype.Uint32(2921044), "names": names}
	return mmdbtype.Map{"continent": mmdbtype.Map{"code": mmdbtype.String("EU"), "names": names}, "country": place, "registered_country": place}
}

// benchAddr is the i-th /24 from 1.0.0.0 on.
func benchAddr(i int) netip.Addr {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], 1<<24+uint32(i)<<8)
	return netip.AddrFrom4(a)
}

// addresses are drawn from the first n networks as clients come: few networks often, many seldom (Zipf, exponent 1.1).
func addresses(n int) []netip.Addr {
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, uint64(n-1))
	list := make([]netip.Addr, 1<<16)
	for i := range list {
		list[i] = benchAddr(int(zipf.Uint64()))
	}
	return list
}

// BenchmarkLookup compares, for both shapes: bare is maxminddb-golang decoding the one field that matters; cold decodes
// nearly each time because the cache holds one network; hit has all 8,192 networks that are asked for in the cache.
//
// A hit saves the decoding and not the walk. So it is worth most with MaxMind's records; a flat record of one field is
// decoded about as fast as it is found in a cache, and if all networks are asked for alike (no Zipf) even a fifth faster.
func BenchmarkLookup(b *testing.B) {
	const asked = 8192
	for _, shape := range []string{"GeoIP2", "flat"} {
		data := shapes[shape](b)
		b.Run(shape+"/bare", func(b *testing.B) { bare(b, shape, data, addresses(asked)) })
		b.Run(shape+"/cold", func(b *testing.B) { lookups(b, serving(b, data, 1), addresses(asked)) })
		b.Run(shape+"/hit", func(b *testing.B) { lookups(b, warm(b, serving(b, data, asked)), addresses(asked)) })
		b.Run(shape+"/hit-parallel", func(b *testing.B) { parallel(b, warm(b, serving(b, data, asked)), addresses(asked)) })
	}
}

func serving(b *testing.B, data []byte, cacheSize int) *Database {
	config, err := Config{CacheSize: cacheSize}.withDefaults()
	if err != nil {
		b.Fatal(err)
	}
	db, err := open(data, config)
	if err != nil {
		b.Fatal(err)
	}
	return db
}

func warm(b *testing.B, db *Database) *Database {
	for i := range 8192 {
		if _, _, err := db.Lookup(benchAddr(i)); err != nil {
			b.Fatal(err)
		}
	}
	return db
}

func lookups(b *testing.B, db *Database, list []netip.Addr) {
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, _, err := db.Lookup(list[i%len(list)]); err != nil {
			b.Fatal(err)
		}
	}
}

func parallel(b *testing.B, db *Database, list []netip.Addr) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := rand.IntN(len(list)); pb.Next(); i++ {
			if _, _, err := db.Lookup(list[i%len(list)]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func bare(b *testing.B, shape string, data []byte, list []netip.Addr) {
	reader, err := maxminddb.OpenBytes(data)
	if err != nil {
		b.Fatal(err)
	}
	decode := bareGeoIP2
	if shape == "flat" {
		decode = bareFlat
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if code, err := decode(reader.Lookup(list[i%len(list)])); err != nil || code == "" {
			b.Fatal(code, err)
		}
	}
}

func bareGeoIP2(found maxminddb.Result) (string, error) {
	var record struct {
		Country struct {
			ISOCode string `maxminddb:"iso_code"`
		} `maxminddb:"country"`
	}
	err := found.Decode(&record)
	return record.Country.ISOCode, err
}

func bareFlat(found maxminddb.Result) (string, error) {
	var record struct {
		CountryCode string `maxminddb:"country_code"`
	}
	err := found.Decode(&record)
	return record.CountryCode, err
}
