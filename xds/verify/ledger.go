package verify

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unique"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// ledger remembers to what each assignment leads, so that one that leads nowhere new need not be followed again. A walk sees
// of an assignment only its marks: where two have the same, or the second has fewer, whatever holds with the first holds
// with the second. That is why a server more in a pool that has servers costs no walk.
type ledger struct {
	atlas *atlas
	known map[identity]*led
	// holders are the assignments that hold an address.
	holders map[netip.AddrPort][]identity
	swept   int // how many were known after the last sweep
}

// led is where one assignment leads.
type led struct {
	places []place
	marks  []mark // of now, sorted, each once
	// walked are the marks with which it stood in a snapshot that was walked and passed; nil: in none.
	walked []mark
}

// place is one address in an assignment.
type place struct {
	at netip.AddrPort // invalid for an internal listener
	// how is everything else that counts: the socket that it chooses, or the whole of an address without IP and port.
	how string
}

// mark is what is at a place and how it is met, all that a walk sees of it. An address at which nothing is stands for itself.
type mark = unique.Handle[string]

func newLedger(a *atlas) *ledger {
	return &ledger{atlas: a, known: map[identity]*led{}, holders: map[netip.AddrPort][]identity{}}
}

func identityOf(r *xds.Resource) identity { return identity{r.Type, r.Name, r.Version} }

// enter reads to what an assignment leads.
func (l *ledger) enter(r *xds.Resource, a *endpoint.ClusterLoadAssignment) *led {
	id := identityOf(r)
	if known := l.known[id]; known != nil {
		return known
	}
	entry := &led{places: placesIn(a)}
	entry.marks = l.marks(entry.places)
	for _, p := range entry.places {
		if p.at.IsValid() {
			l.holders[p.at] = append(l.holders[p.at], id)
		}
	}
	l.known[id] = entry
	return entry
}

// revise moves the ledger on to a world of the same policies, and gives the assignments that lead elsewhere than before.
func (l *ledger) revise(w *world.World) []identity {
	var moved []identity
	changed := l.atlas.revise(w)
	slices.SortFunc(changed, netip.AddrPort.Compare)
	for _, at := range slices.Compact(changed) {
		for _, id := range l.holders[at] {
			entry := l.known[id]
			if now := l.marks(entry.places); !slices.Equal(now, entry.marks) {
				entry.marks = now
				moved = append(moved, id)
			}
		}
	}
	return moved
}

// walked notes that a snapshot with these assignments was walked and passed. It gives false where that was with other marks
// than before, which no longer count: then what was compared with those has to be walked as well.
func (l *ledger) walked(s *xds.Snapshot) bool {
	same := true
	for r := range s.Of(xds.TypeEndpoint).All() {
		entry := l.known[identityOf(r)]
		same = same && (entry.walked == nil || slices.Equal(entry.walked, entry.marks))
		entry.walked = entry.marks
	}
	return same
}

// leadsNowhereNew says whether an assignment leads to nothing else than one of the same name did when it was walked.
func (l *ledger) leadsNowhereNew(walked *xds.Resource, now *led) bool {
	if walked == nil {
		return false
	}
	before := l.known[identityOf(walked)]
	return before != nil && before.walked != nil && subset(now.marks, before.walked)
}

// sweep forgets assignments that stand in none of the snapshots, now and then.
func (l *ledger) sweep(snapshots ...map[world.ViewpointID]*xds.Snapshot) {
	if len(l.known) < 2*l.swept+1000 {
		return
	}
	kept := map[identity]*led{}
	for _, some := range snapshots {
		for _, s := range some {
			for r := range s.Of(xds.TypeEndpoint).All() {
				kept[identityOf(r)] = l.known[identityOf(r)]
			}
		}
	}
	l.known, l.swept = kept, len(kept)
	for at, ids := range l.holders {
		if ids = slices.DeleteFunc(ids, func(id identity) bool { return kept[id] == nil }); len(ids) == 0 {
			delete(l.holders, at)
		} else {
			l.holders[at] = ids
		}
	}
}

func (l *ledger) marks(places []place) []mark {
	all := make([]mark, 0, 2)
	var last mark
	for _, p := range places {
		if m := l.atlas.mark(p); len(all) == 0 || m != last { // most lead to the same
			all, last = append(all, m), m
		}
	}
	slices.SortFunc(all, func(a, b mark) int { return cmp.Compare(a.Value(), b.Value()) })
	return slices.Compact(all)
}

// mark is what is at a place.
func (a *atlas) mark(p place) mark {
	found := a.at[p.at]
	if !p.at.IsValid() || len(found) == 0 {
		return unique.Make(fmt.Sprintf("%s %s", p.at, p.how))
	}
	if len(found) == 1 {
		return a.markOf(found[0], p.how)
	}
	each := make([]string, len(found))
	for i, o := range found {
		each[i] = a.markOf(o, "").Value()
	}
	slices.Sort(each)
	return unique.Make(strings.Join(each, " and ") + p.how)
}

// met is an occupant and how it is met.
type met struct {
	cluster policies.ClusterName
	service policies.ServiceName
	gateway bool
	how     string
}

// markOf remembers: most places are servers of few pools.
func (a *atlas) markOf(o occupant, how string) mark {
	key := met{o.cluster, o.service, o.gateway, how}
	m, ok := a.words[key]
	if !ok {
		m = unique.Make(fmt.Sprintf("%q %q %t %s", o.cluster, o.service, o.gateway, how))
		a.words[key] = m
	}
	return m
}

// placesIn are the places that an assignment leads to.
func placesIn(a *endpoint.ClusterLoadAssignment) []place {
	var all []place
	for _, l := range a.GetEndpoints() {
		for _, host := range l.GetLbEndpoints() {
			how := ""
			if own := host.GetMetadata().GetFilterMetadata()[matchedSockets]; own != nil {
				how = textOf(own)
			}
			for _, address := range addressesOf(host) {
				all = append(all, placeOf(address, how))
			}
		}
	}
	return all
}

func placeOf(address *core.Address, how string) place {
	if at, ok := socket(address); ok {
		return place{at, how}
	}
	return place{how: textOf(address) + how}
}

// textOf is a message as a string that is equal for equal ones.
func textOf(m proto.Message) string {
	bytes, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m) // nothing in it can fail
	return fmt.Sprintf("%q", bytes)
}

// subset says whether all of some sorted marks are among others.
func subset(some, of []mark) bool {
	return !slices.ContainsFunc(some, func(m mark) bool { return !slices.Contains(of, m) })
}
