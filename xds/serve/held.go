package serve

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/meridian-mesh/meridian/xds"
)

// held is what a client says it holds from an earlier stream: the entries of initial_resource_versions as they came, each
// with its length before it. They are read where they are: mostly their sum tells that nothing differs.
type held []byte

// each reads entry by entry; what is not well formed ends it, and parsing has refused that before.
func (h held) each(do func(name, version []byte)) {
	for len(h) > 0 {
		entry, n := protowire.ConsumeBytes(h)
		if n < 0 {
			return
		}
		h = h[n:]
		name, version, err := mapEntry(entry)
		if err != nil {
			return
		}
		do(name, version)
	}
}

// hash is what xds.HashOf sums to.
func (h held) hash(t xds.Type) uint64 {
	var sum uint64
	h.each(func(name, version []byte) { sum += xds.HashOf(t, name, version) })
	return sum
}

// versions are all entries by name.
func (h held) versions() map[string]string {
	versions := map[string]string{}
	h.each(func(name, version []byte) { versions[string(name)] = string(version) })
	return versions
}
