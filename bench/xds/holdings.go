package main

import (
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/meridian-mesh/meridian/xds"
)

// holdings are the names and versions that clients hold. All hold the same, so the first notes them for all.
type holdings struct {
	mu     sync.Mutex
	noted  map[string]string            // under mu: of the response that is being read
	byType map[string]map[string]string // under mu
}

// note takes a resource of a delta response, with its length before it.
func (h *holdings) note(b []byte) {
	entry, _ := protowire.ConsumeBytes(b)
	var name, version string
	for len(entry) > 0 {
		number, typ, n := protowire.ConsumeTag(entry)
		m := protowire.ConsumeFieldValue(number, typ, entry[max(n, 0):])
		if n < 0 || m < 0 {
			return
		}
		switch number {
		case 1:
			version = text(entry[n:])
		case 3:
			name = text(entry[n:])
		}
		entry = entry[n+m:]
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.noted == nil {
		h.noted = map[string]string{}
	}
	h.noted[name] = version
}

// settle says which type the noted resources are of.
func (h *holdings) settle(typ string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byType == nil {
		h.byType = map[string]map[string]string{}
	}
	if h.byType[typ] == nil {
		h.byType[typ] = map[string]string{}
	}
	for name, version := range h.noted {
		h.byType[typ][name] = version
	}
	h.noted = nil
}

// of are the initial_resource_versions of a type, as fields of a delta request.
func (h *holdings) of(t xds.Type) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b []byte
	for name, version := range h.byType[string(t)] {
		entry := field(field(nil, 1, name), 2, version)
		b = protowire.AppendBytes(protowire.AppendTag(b, 5, protowire.BytesType), entry)
	}
	return b
}
