package serve

import (
	"maps"
	"slices"
	"strconv"
	"strings"

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
	// answers counts what the client has answered.
	answers uint64
	// impatient says that the client has taken too long to answer, so that nothing waits for it any more.
	impatient bool
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
	// outstanding is the nonce of the response that has not been answered; empty where there is none.
	outstanding string
	// accepted is the version that the client accepted last.
	accepted string
	// offered are the resources of the outstanding or last response; refusal is why the client refused them.
	offered        []*xds.Resource
	offeredVersion string
	refusal        string
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

// hurry sends what waits for answers that have not come in time.
func (s *session) hurry() []response {
	s.impatient = true
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
	if r.nonce != "" && r.nonce == k.outstanding {
		s.impatient = false
		s.answers++
		k.answer(r)
	}
	if s.full && r.nonce != "" && k.outstanding != "" && r.nonce != k.outstanding {
		return nil // an answer to an older response: a newer request is on its way
	}
	out := s.resubscribe(k, r)
	return append(out, s.advance()...)
}

// answer notes that the outstanding response was accepted or refused.
func (k *kind) answer(r request) {
	k.outstanding = ""
	if r.refusal == "" {
		k.accepted, k.refusal = k.offeredVersion, ""
		return
	}
	k.refusal = r.refusal
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
	removed := missing(k.sent, slices.Sorted(maps.Keys(held)))
	for name := range k.sub.named {
		if _, has := held[name]; !has && find(k.sent, name) == nil {
			removed = append(removed, name)
		}
	}
	if len(fresh) == 0 && len(removed) == 0 && len(held) > 0 {
		k.accepted = k.version
		return nil
	}
	slices.Sort(removed)
	return s.send(k, fresh, removed)
}

// take makes a snapshot's resources those that the client is brought up to.
func (k *kind) take(target *xds.Snapshot) {
	k.sent, k.version = target.Of(k.typ), target.Version(k.typ)
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
	if len(r.subscribe) == 0 || !k.synced {
		return nil
	}
	if k.sub.all && !wasAll {
		return s.send(k, k.sent, nil)
	}
	// A name that is subscribed to again is answered again, even where it is held: the client says that it waits.
	asked := withoutWildcard(r.subscribe)
	if len(asked) == 0 {
		return nil
	}
	return s.send(k, k.named(asked), missing(k.sent, asked))
}

func (s *session) resubscribeFull(k *kind, r request) []response {
	fresh := k.sub.replace(r.names)
	k.forget()
	if len(fresh) == 0 || !k.synced {
		return nil
	}
	if wholeState(k.typ) {
		return s.send(k, append(k.sub.of(k.sent), k.lingering...), nil)
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
	k.outstanding = strconv.FormatUint(s.nonces, 10)
	k.offered, k.offeredVersion = resources, k.version
	return []response{{typ: k.typ, nonce: k.outstanding, version: k.version, resources: resources, removed: removed}}
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
