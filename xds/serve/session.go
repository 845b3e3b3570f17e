package serve

import (
	"maps"
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
	subscribe, unsubscribe []string
	// names are all that are wanted (state of the world).
	names []string
	// held are the versions that the client says it holds from before (delta, first request).
	held map[string]string
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
}

// session is the state of one stream. One goroutine owns it.
type session struct {
	// full says that the protocol is state of the world: responses hold all that is wanted, and removal is absence.
	full   bool
	target *xds.Snapshot // newest; nil before the first
	kinds  map[xds.Type]*kind
	nonces uint64
	// now is the time of what the session is told of. Its owner sets it: a session reads no clock.
	now time.Time
}

// offer is a response that has not been answered.
type offer struct {
	nonce, version string
	resources      []*xds.Resource
	at             time.Time
}

// kind is the state of one type of resource in a session.
type kind struct {
	typ xds.Type
	sub subscription
	// sent are the resources of this type in the snapshot that the client was last brought up to, subscribed to or not.
	sent    []*xds.Resource
	version string // of sent
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
	held        map[string]string
	heldVersion string
}

func newSession(full bool) *session {
	return &session{full: full, kinds: map[xds.Type]*kind{}}
}

// update takes a new snapshot and returns what is to be sent now.
func (s *session) update(target *xds.Snapshot) []response {
	s.target = target
	return s.advance()
}

// due is when the next response will have been unanswered for as long as patience; zero where none is outstanding that
// is not overdue already.
func (s *session) due(patience time.Duration) time.Time {
	var first time.Time
	for _, k := range s.kinds {
		if len(k.outstanding) == 0 || k.overdue {
			continue
		}
		if at := k.outstanding[0].at.Add(patience); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// hurry sends what waits for answers that have not come within patience.
func (s *session) hurry(patience time.Duration) []response {
	for _, k := range s.kinds {
		k.overdue = k.overdue || len(k.outstanding) > 0 && !s.now.Before(k.outstanding[0].at.Add(patience))
	}
	return s.advance()
}

// handle takes a request and returns what is to be sent now.
func (s *session) handle(r request) []response {
	k, known := s.kinds[r.typ]
	if !known {
		k = &kind{typ: r.typ}
		s.kinds[r.typ] = k
		return s.first(k, r)
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

// offerOf finds the outstanding response that a nonce answers; -1 where there is none.
func (k *kind) offerOf(nonce string) int {
	return slices.IndexFunc(k.outstanding, func(o offer) bool { return o.nonce == nonce })
}

// answer notes that an outstanding response was accepted, or why it was refused. Answers come in order, so an older
// response that has none will get none.
func (k *kind) answer(i int, refusal string) {
	o := k.outstanding[i]
	k.outstanding, k.overdue = k.outstanding[i+1:], false
	if refusal != "" {
		k.refused, k.refusal = o.resources, refusal
		return
	}
	k.accepted = o.version
	if k.refusal != "" && mends(k.refused, o.resources) {
		k.refused, k.refusal = nil, ""
	}
}

// mends says whether accepting resources ends the refusal of others: one that was refused is among them. Which of
// several was at fault a client does not say in a form to rely on.
func mends(refused, accepted []*xds.Resource) bool {
	names := make(map[string]struct{}, len(accepted))
	for _, r := range accepted {
		names[r.Name] = struct{}{}
	}
	return len(refused) == 0 || slices.ContainsFunc(refused, func(r *xds.Resource) bool {
		_, ok := names[r.Name]
		return ok
	})
}

// first opens a type's subscription.
func (s *session) first(k *kind, r request) []response {
	k.held, k.heldVersion = r.held, r.version
	if s.full {
		k.sub.open(r.names)
	} else {
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
	k.take(s.target)
	k.synced = true
	held := k.held
	k.held = nil
	if s.full {
		if k.heldVersion == k.version && wholeState(k.typ) && k.sub.all {
			k.accepted = k.version
			return nil
		}
		return s.send(k, s.withEmpty(k, k.sub.of(k.sent)), nil)
	}
	var fresh []*xds.Resource
	for _, r := range k.sub.of(k.sent) {
		if held[r.Name] != r.Version {
			fresh = append(fresh, r)
		}
	}
	k.linger(held)
	removed := missing(k.sent, slices.DeleteFunc(slices.Collect(maps.Keys(k.sub.named)), func(name string) bool {
		_, has := held[name]
		return has
	}))
	if len(fresh) == 0 && len(removed) == 0 && len(k.lingering) == 0 && len(held) > 0 {
		k.accepted = k.version
		return nil
	}
	return s.send(k, fresh, removed) // empty where all that is to do is to remove: its answer says when to
}

// linger notes what the client holds from an earlier stream and should not: what it holds of other types may refer to it
// still, so it goes last.
func (k *kind) linger(held map[string]string) {
	for _, name := range missing(k.sent, slices.Collect(maps.Keys(held))) {
		if k.sub.wants(name) {
			k.lingering = append(k.lingering, xds.Serialised(k.typ, name, "", nil))
		}
	}
}

// take makes a snapshot's resources those that the client is brought up to.
func (k *kind) take(target *xds.Snapshot) {
	k.sent, k.version = slices.Collect(target.Of(k.typ).All()), target.Version(k.typ)
}

// withEmpty adds an empty assignment for each cluster whose endpoints were asked for and are not there: a client of the
// state of the world would wait for them, and warm the cluster, for ever. A delta client is told that they are removed.
func (s *session) withEmpty(k *kind, resources []*xds.Resource) []*xds.Resource {
	if k.typ != xds.TypeEndpoint {
		return resources
	}
	return append(slices.Clip(resources), empties(missing(k.sent, slices.Sorted(maps.Keys(k.sub.named))))...)
}

// resubscribe answers names that are new to the subscription at once: a client waits for them.
func (s *session) resubscribe(k *kind, r request) []response {
	if s.full {
		return s.resubscribeFull(k, r)
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
	asked := withoutWildcard(r.subscribe)
	if k.sub.all {
		asked = append(asked, withoutWildcard(r.unsubscribe)...)
	}
	slices.Sort(asked)
	asked = slices.Compact(asked)
	switch {
	case k.sub.all && !wasAll:
		return s.send(k, k.sent, missing(k.sent, asked))
	case len(asked) > 0:
		return s.send(k, k.named(asked), missing(k.sent, asked))
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
		return s.send(k, append(slices.Clone(k.sub.of(k.sent)), k.lingering...), nil)
	}
	resources := k.named(fresh)
	if k.typ == xds.TypeEndpoint {
		resources = append(resources, empties(missing(k.sent, fresh))...)
	}
	return s.send(k, resources, nil)
}

// named are the resources with these names, of those that are there.
func (k *kind) named(names []string) []*xds.Resource {
	var resources []*xds.Resource
	for _, name := range names {
		if r := find(k.sent, name); r != nil {
			resources = append(resources, r)
		}
	}
	return resources
}

// forget drops what lingers but is no longer subscribed to: the client has let go of it by itself.
func (k *kind) forget() {
	kept := k.lingering[:0:0]
	for _, res := range k.lingering {
		if k.sub.wants(res.Name) {
			kept = append(kept, res)
		}
	}
	k.lingering = kept
}

// send makes a response of it and notes it as outstanding.
func (s *session) send(k *kind, resources []*xds.Resource, removed []string) []response {
	s.nonces++
	nonce := strconv.FormatUint(s.nonces, 10)
	k.outstanding = append(k.outstanding, offer{nonce: nonce, version: k.version, resources: resources, at: s.now})
	k.offered = k.version
	return []response{{typ: k.typ, nonce: nonce, version: k.version, resources: resources, removed: removed}}
}

// wholeState says whether state-of-the-world responses of a type must hold everything: for the others, a resource that is
// left out is unchanged.
func wholeState(t xds.Type) bool { return t == xds.TypeCluster || t == xds.TypeListener }

func withoutWildcard(names []string) []string {
	var rest []string
	for _, n := range names {
		if n != wildcard {
			rest = append(rest, strings.Clone(n))
		}
	}
	return rest
}
