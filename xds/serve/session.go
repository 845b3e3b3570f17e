package serve

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/meridian-mesh/meridian/xds"
)

// request is what a client says, in either protocol.
type request struct {
	typ xds.Type
	// nonce is that of the response that the request answers; empty for a first request, or a spontaneous one.
	nonce string
	// refusal is why the client refused that response; empty where it accepted.
	refusal string
	// subscribe and unsubscribe are names to add and remove (delta).
	subscribe, unsubscribe *names
	// names are all that are wanted (state of the world).
	names *names
	// held is what the client says it holds from before (delta, first request).
	held held
	// version is the type's version that the client says it holds from before (state of the world, first request).
	version string
}

// response is what a client is sent, in either protocol.
type response struct {
	typ       xds.Type
	nonce     string
	version   string
	resources []*xds.Resource
	// removed are names that the client should forget (delta).
	removed []string
	// absent are names of virtual hosts that are not there: a client that asked on demand waits to be told so (delta).
	absent []string
	// heartbeat says that the resources are unchanged, and only their lifetime is renewed.
	heartbeat bool
}

// session is the state of one stream. One goroutine at a time owns it.
type session struct {
	// full says that the protocol is state of the world: responses hold all that is wanted, and removal is absence.
	full  bool
	table *nameTable
	// diff compares two sets of a type. What it returns is shared, and must not be changed.
	diff func(t xds.Type, before, after *xds.Set) (changed, gone []*xds.Resource)
	// lifetimes says that the client understands resources with a TTL.
	lifetimes bool
	// target is what the client is to be brought to, nil before there is anything, and since when the oldest change in it
	// came in. Its owner sets both.
	target *xds.Snapshot
	since  time.Time
	kinds  []*kind // in the order of their types
	nonces uint64
	// now is the time of what the session is told of. Its owner sets it: a session reads no clock.
	now time.Time
}

// offer is a response that has not been answered.
type offer struct {
	nonce, version string
	resources      []*xds.Resource
	at             time.Time
	// since is when the change came in that the response is about; zero where it only answers what was asked.
	since time.Time
}

// kind is the state of one type of resource in a session.
type kind struct {
	typ xds.Type
	sub subscription
	// sent are the resources of this type in the snapshot that the client was last brought up to, subscribed to or not.
	sent *xds.Set
	// synced says that sent means something: a first answer has been given.
	synced bool
	// lingering are resources that the client holds and the newest snapshot does not: they are removed last.
	lingering []*xds.Resource
	// outstanding are the responses that have not been answered, oldest first: one, and those that answer names that
	// the client asked for meanwhile.
	outstanding []offer
	// overdue says that the client has taken too long to answer, so that nothing else waits for it any more.
	overdue bool
	// accepted is the version that the client accepted last, offered the one that it was sent last.
	accepted, offered string
	// refused are the resources that the client refused, and refusal is why; empty where nothing stands refused.
	refused []*xds.Resource
	refusal string
	// held and heldVersion are what the client says it holds from an earlier stream, until its first answer.
	held        held
	heldVersion string
	// beaten is when the lifetimes of what the client holds were last renewed; zero before it holds anything that has one.
	beaten time.Time
}

func newSession(full bool, table *nameTable) *session {
	return &session{full: full, table: table, lifetimes: !full, diff: new(changes).diff}
}

// kind is the state of a type; nil where the client has not asked for it.
func (s *session) kind(t xds.Type) *kind {
	for _, k := range s.kinds {
		if k.typ == t {
			return k
		}
	}
	return nil
}

// add begins a type.
func (s *session) add(t xds.Type) *kind {
	k := &kind{typ: t, sub: subscription{table: s.table}}
	i, _ := slices.BinarySearchFunc(s.kinds, t, func(k *kind, t xds.Type) int { return k.typ.Compare(t) })
	s.kinds = slices.Insert(s.kinds, i, k)
	return k
}

// handle takes a request and returns what is to be sent now.
func (s *session) handle(r request) []response {
	k := s.kind(r.typ)
	if k == nil {
		return s.first(s.add(r.typ), r)
	}
	if i := k.offerOf(r.nonce); i >= 0 {
		k.answer(i, r.refusal)
	}
	if s.full && r.nonce != "" && len(k.outstanding) > 0 {
		return nil // an answer to an older response: a newer request is on its way
	}
	out := s.resubscribe(k, r)
	return append(out, s.advance()...)
}

// answeredBy is the response that a request answers.
func (s *session) answeredBy(r request) (o offer, ok bool) {
	k := s.kind(r.typ)
	if k == nil {
		return offer{}, false
	}
	i := k.offerOf(r.nonce)
	if i < 0 {
		return offer{}, false
	}
	return k.outstanding[i], true
}

// refusedOf are the resources of a type that stand refused.
func (s *session) refusedOf(t xds.Type) []*xds.Resource {
	if k := s.kind(t); k != nil {
		return k.refused
	}
	return nil
}

// offerOf finds the outstanding response that a nonce answers; -1 where there is none.
func (k *kind) offerOf(nonce string) int {
	return slices.IndexFunc(k.outstanding, func(o offer) bool { return o.nonce == nonce })
}

// answer notes that an outstanding response was accepted, or why it was refused. Answers come in order, so an older
// response that has none will get none.
func (k *kind) answer(i int, refusal string) {
	o := k.outstanding[i]
	k.outstanding, k.overdue = k.outstanding[i+1:], false
	if len(k.outstanding) == 0 {
		k.outstanding = nil
	}
	if refusal != "" {
		k.refused, k.refusal = blamed(o.resources, refusal), refusal
		return
	}
	k.accepted = o.version
	if k.refusal != "" && mends(k.refused, o.resources) {
		k.refused, k.refusal = nil, ""
	}
}

// blamed are those of the refused resources that the client's reason names; all where it names none. Envoy takes what is
// right in a response and names the rest, as in "Error adding/updating cluster(s) a: ..., b: ...".
func blamed(resources []*xds.Resource, reason string) []*xds.Resource {
	var named []*xds.Resource
	for _, r := range resources {
		if mentions(reason, r.Name) {
			named = append(named, r)
		}
	}
	if len(named) == 0 {
		return resources
	}
	return named
}

// mentions says whether a text has a name in it that is not part of a longer one.
func mentions(text, name string) bool {
	for at := 0; name != ""; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		begin, end := at+i, at+i+len(name)
		if (begin == 0 || !inName(text[begin-1])) && (end == len(text) || !inName(text[end])) {
			return true
		}
		at = begin + 1
	}
	return false
}

// inName says whether a character is one that names are made of.
func inName(c byte) bool {
	return c == '/' || c == '-' || c == '_' || c == '+' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// mends says whether accepting resources ends the refusal of others: one that was refused is among them.
func mends(refused, accepted []*xds.Resource) bool {
	for _, r := range refused {
		if slices.ContainsFunc(accepted, func(a *xds.Resource) bool { return a.Name == r.Name }) {
			return true
		}
	}
	return len(refused) == 0
}

// first opens a type's subscription.
func (s *session) first(k *kind, r request) []response {
	k.held, k.heldVersion = r.held, r.version
	switch {
	case s.full:
		k.sub.open(r.names)
	case k.typ == xds.TypeVirtualHost:
		k.sub.add(r.subscribe) // a client names them when a request needs them: that it names none yet does not mean all
	default:
		k.sub.open(r.subscribe)
		k.sub.remove(r.unsubscribe)
	}
	if s.target == nil {
		return nil
	}
	return s.bringUp(k)
}

// bringUp gives a type's first answer, minding what the client holds from an earlier stream.
func (s *session) bringUp(k *kind) []response {
	k.sent, k.synced = s.target.Of(k.typ), true
	held, wanted := k.held, k.wanted()
	k.held, k.beaten = nil, s.now
	if s.full {
		if k.heldVersion == k.sent.Version() && wholeState(k.typ) && k.sub.all {
			k.accepted = k.sent.Version()
			return nil
		}
		return s.send(k, s.withEmpty(k, wanted.resources, k.sub.named.list()), nil)
	}
	absent := missing(k.sent, k.sub.named.list())
	if k.typ == xds.TypeVirtualHost && len(k.sub.named.list()) == 0 && len(held) == 0 {
		return s.send(k, nil, s.noVirtualHosts())
	}
	if len(held) == 0 {
		return s.sendAsked(k, wanted.resources, absent)
	}
	if len(absent) == 0 && held.hash(k.typ) == wanted.hash {
		k.accepted = k.sent.Version() // it holds exactly this
		return nil
	}
	return s.catchUp(k, held.versions(), wanted.resources, absent)
}

// wanted is what the client wants of what it is brought up to.
func (k *kind) wanted() selection {
	resources, hash := k.sub.from(k.sent)
	return selection{resources: resources, hash: hash}
}

// catchUp sends what differs from what a client holds. What it should not hold goes last: what it holds of other types may
// refer to it still.
func (s *session) catchUp(k *kind, held map[string]string, wanted []*xds.Resource, absent []string) []response {
	var fresh []*xds.Resource
	for _, r := range wanted {
		if held[r.Name] != r.Version {
			fresh = append(fresh, r)
		}
	}
	absent = slices.DeleteFunc(absent, func(name string) bool { _, has := held[name]; return has })
	for name := range held {
		if k.sent.Find(name) == nil {
			if gone := xds.Serialised(k.typ, name, "", nil); k.sub.wants(gone) || k.typ == xds.TypeVirtualHost {
				k.lingering = append(k.lingering, gone)
			}
		}
	}
	slices.SortFunc(k.lingering, func(a, b *xds.Resource) int { return strings.Compare(a.Name, b.Name) })
	if len(fresh) == 0 && len(absent) == 0 && len(k.lingering) == 0 {
		k.accepted = k.sent.Version()
		return nil
	}
	return s.sendAsked(k, fresh, absent) // empty where all that is to do is to remove: its answer says when to
}

// withEmpty adds an empty assignment for each cluster whose endpoints were asked for and are not there: a client of the
// state of the world would wait for them, and warm the cluster, for ever. A delta client is told that they are removed.
func (s *session) withEmpty(k *kind, resources []*xds.Resource, asked []string) []*xds.Resource {
	if k.typ != xds.TypeEndpoint {
		return resources
	}
	if absent := missing(k.sent, asked); len(absent) > 0 {
		return append(slices.Clip(resources), empties(absent)...)
	}
	return resources
}

// resubscribe answers names that are new to the subscription at once: a client waits for them.
func (s *session) resubscribe(k *kind, r request) []response {
	if s.full {
		return s.resubscribeFull(k, r)
	}
	if r.subscribe == nil && r.unsubscribe == nil {
		return nil
	}
	wasAll := k.sub.all
	k.sub.remove(r.unsubscribe)
	k.forget()
	k.sub.add(r.subscribe)
	if !k.synced {
		return nil
	}
	// A name that is subscribed to again is answered again, even where it is held: the client says that it waits. So is
	// one that is let go of under a wildcard: the client can't know whether the wildcard has it.
	asked := r.subscribe
	if k.sub.all {
		asked = s.table.plus(asked, r.unsubscribe)
	}
	asked = s.table.without(asked, wildcard)
	switch {
	case k.sub.all && !wasAll:
		return s.sendAsked(k, k.wanted().resources, missing(k.sent, asked.list()))
	case asked != nil:
		return s.sendAsked(k, asked.from(k.sent).resources, missing(k.sent, asked.list()))
	}
	return nil
}

func (s *session) resubscribeFull(k *kind, r request) []response {
	wasAll := k.sub.all
	fresh := k.sub.replace(r.names)
	k.forget()
	widened := k.sub.all && !wasAll
	if len(fresh) == 0 && !widened || !k.synced {
		return nil
	}
	if widened || wholeState(k.typ) {
		return s.send(k, append(slices.Clone(k.wanted().resources), k.lingering...), nil)
	}
	return s.send(k, s.withEmpty(k, s.table.of(fresh...).from(k.sent).resources, fresh), nil)
}

// forget drops what lingers but is no longer subscribed to: the client has let go of it by itself. Of a virtual host we may
// not know under which of its domains the client holds it, and to say once more that it is gone does no harm.
func (k *kind) forget() {
	if len(k.lingering) > 0 && k.typ != xds.TypeVirtualHost {
		k.lingering = slices.Clone(k.sub.of(k.lingering))
	}
}

// send makes a response of it and notes it as outstanding.
func (s *session) send(k *kind, resources []*xds.Resource, removed []string) []response {
	r := s.response(k)
	r.resources, r.removed = resources, removed
	k.outstanding = append(k.outstanding, offer{nonce: r.nonce, version: r.version, resources: resources, at: s.now})
	k.offered = r.version
	return []response{r}
}

// sendAsked sends what was asked for, and says which of it is not there. Envoy knows a virtual host that it asked for by a
// domain, and so can't be told that a name is removed.
func (s *session) sendAsked(k *kind, resources []*xds.Resource, absent []string) []response {
	if k.typ != xds.TypeVirtualHost {
		return s.send(k, resources, absent)
	}
	out := s.send(k, resources, nil)
	out[0].absent = absent
	return out
}

// noVirtualHosts names a virtual host that never is for each route configuration that the client wants. Envoy 1.40 holds a
// listener back until it is told anything of the virtual hosts in each of its route configurations, for 15 s at most, and a
// response in which nothing is does not count.
func (s *session) noVirtualHosts() []string {
	var names []string
	if routes := s.kind(xds.TypeRoute); routes != nil {
		for _, route := range routes.sub.named.list() {
			names = append(names, route+"/")
		}
	}
	return names
}

// response is an empty response of a type, with a nonce of its own.
func (s *session) response(k *kind) response {
	s.nonces++
	return response{typ: k.typ, nonce: strconv.FormatUint(s.nonces, 10), version: k.sent.Version()}
}

// wholeState says whether state-of-the-world responses of a type must hold everything: for the others, a resource that is
// left out is unchanged.
func wholeState(t xds.Type) bool { return t == xds.TypeCluster || t == xds.TypeListener }
