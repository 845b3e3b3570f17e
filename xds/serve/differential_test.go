package serve_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
)

// go-control-plane's server, over each of its two caches, and ours are given the same resources, and a client of each does the
// same: whenever all is quiet, both hold the same, and what the protocol says that they should.
//
// Not compared is what go-control-plane v0.14.0 gets wrong, or has no way to get right, as far as this is known: see
// rig.mayWant, linearStock.forgets and holder.shouldHold. Neither are
//   - names that are subscribed to again while the client holds them (delta): go-control-plane says nothing, where the protocol
//     wants them answered. Clients here drop only what they let go of, so that they hold the same anyway.
//   - names in both lists of one request (delta): the protocol does not say which counts.
//   - refusals: go-control-plane takes one for an acceptance.
func TestClientsHoldWhatTheyWouldHoldOfGoControlPlane(t *testing.T) {
	for name, newStock := range map[string]func() stock{"snapshot cache": newSnapshotStock, "linear caches": newLinearStock} {
		for protocol, full := range map[string]bool{"delta": false, "state of the world": true} {
			t.Run(name+", "+protocol, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					r := newRig(t, full, newStock())
					t.Repeat(map[string]func(*rapid.T){
						"change the world": r.changeWorld,
						"change the mind":  r.changeMind,
						"reconnect":        r.reconnect,
						"":                 r.compare,
					})
				})
			})
		}
	}
}

// rig are the two servers, and a client of each.
type rig struct {
	t     *rapid.T
	full  bool // the protocol is state of the world
	stock stock
	cache *cache.Cache

	world        contents
	snapshot     *xds.Snapshot // the world, for our server
	theirs, ours *holder
}

// contents are the serialised resources by type and name.
type contents map[xds.Type]map[string]string

// The types that are compared, and the names that there may be of each.
var (
	compared = []xds.Type{xds.TypeCluster, xds.TypeEndpoint, xds.TypeListener, xds.TypeRoute}
	resNames = []string{"a", "b", "c", "d"}
)

// change is one of a resource's content, 0 to remove it.
type change struct {
	typ     xds.Type
	name    string
	content int
}

// newRig runs servers that have nothing yet but the fences, and connects the clients.
func newRig(t *rapid.T, full bool, s stock) *rig {
	r := &rig{t: t, full: full, stock: s, cache: &cache.Cache{}, world: contents{}, snapshot: xds.NewSnapshot(viewpoint.ID(), nil)}
	r.publish([]change{{fenceType, fences[0], 1}, {fenceType, fences[1], 1}})
	r.theirs = &holder{t: t, ads: serveStock(t, s), full: full, forgets: s.forgets(), kinds: map[xds.Type]*holding{}}
	r.ours = &holder{t: t, ads: serveOurs(t, r.cache), full: full, kinds: map[xds.Type]*holding{}}
	r.theirs.connect()
	r.ours.connect()
	return r
}

// publish changes the world, for both servers at once.
func (r *rig) publish(changes []change) {
	var put, removed []*xds.Resource
	for _, c := range changes {
		if r.world[c.typ] == nil {
			r.world[c.typ] = map[string]string{}
		}
		if c.content == 0 {
			delete(r.world[c.typ], c.name)
			removed = append(removed, xds.Serialised(c.typ, c.name, "", nil))
			continue
		}
		made, err := xds.NewResource(c.typ, c.name, messageOf(c.typ, c.name, c.content))
		if err != nil {
			r.t.Fatal(err)
		}
		r.world[c.typ][c.name] = string(made.Bytes)
		put = append(put, made)
	}
	r.snapshot = r.snapshot.With(put, removed)
	r.cache.Publish(r.snapshot, time.Now())
	if err := r.stock.publish(changes); err != nil {
		r.t.Fatal(err)
	}
}

// changeWorld publishes once or more, without waiting for clients.
func (r *rig) changeWorld(t *rapid.T) {
	for range rapid.IntRange(1, 3).Draw(t, "publications") {
		r.publish(rapid.SliceOfNDistinct(changes, 1, 6, func(c change) string { return string(c.typ) + c.name }).Draw(t, "changes"))
	}
}

var changes = rapid.Custom(func(t *rapid.T) change {
	return change{rapid.SampledFrom(compared).Draw(t, "type"), rapid.SampledFrom(resNames).Draw(t, "name"), rapid.IntRange(0, 3).Draw(t, "content")}
})

// changeMind lets both clients want something else. In delta they may do so several times at once. In the state of the world
// they must not: a name that is let go of and taken up again while a response is on its way looks to any server as if
// nothing had happened.
func (r *rig) changeMind(t *rapid.T) {
	most := 4
	if r.full {
		most = 1
	}
	for range rapid.IntRange(1, most).Draw(t, "times") {
		r.want(t)
	}
}

func (r *rig) want(t *rapid.T) {
	typ, after := rapid.SampledFrom(compared).Draw(t, "type"), wishes.Draw(t, "wish")
	if r.mayWant(typ, after) {
		r.theirs.want(typ, after)
		r.ours.want(typ, after)
	}
}

var wishes = rapid.Custom(func(t *rapid.T) wish {
	names := rapid.SliceOfDistinct(rapid.SampledFrom(resNames), rapid.ID[string]).Draw(t, "names")
	slices.Sort(names)
	return wish{all: rapid.Bool().Draw(t, "all"), implied: rapid.Bool().Draw(t, "implied"), names: names}
})

// mayWant says whether clients may come to want something. They may not
//   - end a wildcard that they got by naming nothing without naming something: the state of the world has no words for it,
//     and go-control-plane passes over the delta request that unsubscribes from "*".
//   - end a wildcard of the snapshot cache in delta: it goes on believing that they hold what they let go of with it, and
//     does not send it when it is named.
//   - name "*" to the snapshot cache in the state of the world: it looks for a resource of that name.
func (r *rig) mayWant(typ xds.Type, after wish) bool {
	k := r.ours.kind(typ)
	if k.legacy && !after.all && len(after.names) == 0 {
		return false
	}
	if _, snapshots := r.stock.(*snapshotStock); !snapshots {
		return true
	}
	if r.full {
		return !after.all || after.implied && len(after.names) == 0 && (k.legacy || !k.open)
	}
	return !k.open || !k.wish.all || after.all
}

// reconnect lets both clients come back, with what they hold or without, to a world and with wishes that may have changed.
func (r *rig) reconnect(t *rapid.T) {
	keeps := rapid.Bool().Draw(t, "keeps")
	r.theirs.disconnect(keeps)
	r.ours.disconnect(keeps)
	if rapid.Bool().Draw(t, "world changes meanwhile") {
		r.changeWorld(t)
	}
	for range rapid.IntRange(0, 3).Draw(t, "minds change meanwhile") {
		r.want(t)
	}
	r.theirs.connect()
	r.ours.connect()
}

// compare waits until all is quiet.
func (r *rig) compare(t *rapid.T) {
	r.theirs.rest()
	r.ours.rest()
	want := r.shouldHold()
	if diff := cmp.Diff(r.holds(r.theirs), r.holds(r.ours)); diff != "" {
		t.Errorf("Meridian's client does not hold what go-control-plane's does (-go-control-plane +Meridian):\n%s", diff)
	}
	if diff := cmp.Diff(want, r.holds(r.ours)); diff != "" {
		t.Errorf("Meridian's client does not hold what it should (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, r.holds(r.theirs)); diff != "" {
		t.Errorf("go-control-plane's client does not hold what it should (-want +got):\n%s", diff)
	}
}

// shouldHold is what is in the world and wanted.
func (r *rig) shouldHold() contents {
	should := contents{}
	for _, typ := range compared {
		should[typ] = map[string]string{}
		for name, content := range r.world[typ] {
			if r.ours.kind(typ).wish.has(name) {
				should[typ][name] = content
			}
		}
	}
	return should
}

// holds is what a client holds, as far as the protocol can tell it. In the state of the world only clusters and listeners can
// be said to be gone. What a client holds of another type that is no more is what it happened to be told last: it keeps
// that until whatever names it is gone. We send an empty assignment to who asks for endpoints that are not there,
// go-control-plane nothing.
func (r *rig) holds(h *holder) contents {
	holds := contents{}
	for _, typ := range compared {
		holds[typ] = map[string]string{}
		for name, held := range h.kind(typ).holds {
			if _, exists := r.world[typ][name]; exists || !r.full || complete(typ) {
				holds[typ][name] = held.content
			}
		}
	}
	return holds
}
