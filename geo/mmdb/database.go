package mmdb

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/meridian-mesh/meridian/geo"
)

const (
	// DefaultCacheSize holds the networks of a busy hour at a gateway in about 4 MB.
	DefaultCacheSize = 16384
	// DefaultPollInterval is far below the days between two issues of a database.
	DefaultPollInterval = 5 * time.Second
)

// Config says which database to serve. The zero value serves the embedded demo database.
type Config struct {
	// Path is the file to read. Empty means the embedded demo database, which never changes and is fit for a demo only:
	// see Info.Demo.
	Path string
	// CacheSize is how many networks are cached at most; 0 means DefaultCacheSize.
	CacheSize int
	// PollInterval is how often Run looks whether the file is another one; 0 means DefaultPollInterval. It looks, rather
	// than being notified, because that works alike for renames, symlink swaps and network file systems.
	PollInterval time.Duration
	// OnReload is told of every swap, and once of every new reason why there was none, by Run's goroutine. The Info is of
	// the database that serves from now on. May be nil.
	OnReload func(Info, error)
}

func (c Config) withDefaults() (Config, error) {
	if c.CacheSize < 0 || c.PollInterval < 0 {
		return c, fmt.Errorf("geo database %q: cache size %d and poll interval %v must not be negative", c.Path, c.CacheSize, c.PollInterval)
	}
	if c.CacheSize == 0 {
		c.CacheSize = DefaultCacheSize
	}
	if c.PollInterval == 0 {
		c.PollInterval = DefaultPollInterval
	}
	return c, nil
}

// Database finds places by address, and follows its file while Run runs.
type Database struct {
	// Set once.
	config Config

	// Atomic.
	current                             atomic.Pointer[edition]
	hits, misses, reloads, reloadErrors atomic.Uint64

	// By New, then only by Run: the file that was last read, and the error last told.
	seen os.FileInfo
	told string
}

// New reads the database and checks all of it. The error says what is wrong with the file.
func New(config Config) (*Database, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	if config.Path == "" {
		return open(demoDatabase, config)
	}
	d := &Database{config: config}
	found, err := os.Stat(config.Path)
	if err != nil {
		return nil, fmt.Errorf("geo database: %w", err)
	}
	if err := d.load(found); err != nil {
		return nil, err
	}
	return d, nil
}

// Open serves a database that is already in memory. The bytes must not change afterwards.
func Open(data []byte) (*Database, error) {
	config, err := Config{}.withDefaults()
	if err != nil {
		return nil, err
	}
	return open(data, config)
}

func open(data []byte, config Config) (*Database, error) {
	e, err := newEdition(data, config)
	if err != nil {
		return nil, fmt.Errorf("geo database in memory: %w", err)
	}
	d := &Database{config: config}
	d.current.Store(e)
	return d, nil
}

// ipv6 is what an IPv4 database knows nothing of.
var ipv6 = netip.PrefixFrom(netip.IPv6Unspecified(), 0)

// Lookup is the place of an address, and the network that the place holds for. An IPv4 address in IPv6 clothing
// (::ffff:192.0.2.7) is looked up as IPv4. An error means that the address is the zero Addr.
func (d *Database) Lookup(addr netip.Addr) (geo.Place, netip.Prefix, error) {
	if !addr.IsValid() {
		return geo.Place{}, netip.Prefix{}, errors.New("geo lookup: the address is not set")
	}
	e, addr := d.current.Load(), addr.Unmap()
	if addr.Is6() && e.info.IPVersion == 4 {
		return geo.Place{}, ipv6, nil
	}
	result := e.reader.Lookup(addr)
	network := result.Prefix()
	if !result.Found() {
		return geo.Place{}, network, e.failed(network, result.Err())
	}
	if place, ok := e.cache.get(network); ok {
		d.hits.Add(1)
		return *place, network, nil
	}
	d.misses.Add(1)
	place, err := e.decode(addr, result)
	if err != nil {
		return geo.Place{}, network, e.failed(network, err)
	}
	e.cache.add(network, place)
	return place, network, nil
}

// Info describes the database that serves.
type Info struct {
	// Path is the file; empty for a database in memory.
	Path string
	// Type is what the database calls itself, as "GeoLite2-City".
	Type string
	// Built is when its publisher made it.
	Built time.Time
	// IPVersion is 4 for a database that has IPv4 only, 6 for one that has both.
	IPVersion int
	// Demo is true for the embedded demo database, also when it comes from a file. It must not decide residency for real
	// clients: whoever serves with it says so, loudly.
	Demo bool
}

// Info describes the database that serves now.
func (d *Database) Info() Info { return d.current.Load().info }

// Stats counts since New, but for Entries.
type Stats struct {
	// Hits and Misses are of lookups of networks that the database has.
	Hits, Misses uint64
	// Entries is how many networks are cached now; a reload starts from none.
	Entries int
	// Reloads and ReloadErrors are what OnReload was told.
	Reloads, ReloadErrors uint64
}

// Stats are for metrics; the numbers are each right, but not of one instant.
func (d *Database) Stats() Stats {
	return Stats{
		Hits: d.hits.Load(), Misses: d.misses.Load(), Entries: d.current.Load().cache.len(),
		Reloads: d.reloads.Load(), ReloadErrors: d.reloadErrors.Load(),
	}
}
