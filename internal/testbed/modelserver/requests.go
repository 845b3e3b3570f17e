package modelserver

import (
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Request is a request for inference as the server got it. It must not be changed.
type Request struct {
	At      time.Time // when its body was there
	Method  string
	Path    string
	Host    string
	Header  http.Header
	Client  netip.AddrPort // the peer of the connection: a gateway, mostly
	Model   string         // "" where the body could not be read
	Bytes   int            // of the body
	Stopped error          // why the body could not be received, or nil
}

// ring keeps the newest requests.
type ring struct {
	keep int // set once

	mu   sync.Mutex
	kept []Request // under mu; the next to be replaced is at next, once it is full
	next int
}

func (r *ring) add(q Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) < r.keep {
		r.kept = append(r.kept, q)
		return
	}
	r.kept[r.next] = q
	r.next = (r.next + 1) % r.keep
}

func (r *ring) list() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.kept[r.next:], r.kept[:r.next])
}
