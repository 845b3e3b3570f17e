package serve_test

import (
	"context"
	"slices"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	stockcache "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/xds"
)

// wish is what a client wants of a type.
type wish struct {
	all bool
	// implied says that a client that wants everything, and nothing by name, says so by naming nothing in its first request.
	implied bool
	names   []string // sorted
}

func (w wish) has(name string) bool { return w.all || slices.Contains(w.names, name) }

// list is the wish in the protocol's words.
func (w wish) list() []string {
	if w.all {
		return append([]string{"*"}, w.names...)
	}
	return w.names
}

// without are those of some names that others are not.
func without(some, others []string) []string {
	return slices.DeleteFunc(slices.Clone(some), func(n string) bool { return slices.Contains(others, n) })
}

// holder is a client of either protocol, which holds what it is told and wants, and accepts everything.
type holder struct {
	t       *rapid.T
	ads     discovery.AggregatedDiscoveryServiceClient
	full    bool // the protocol is state of the world
	forgets bool // says no version on a new stream (state of the world)

	kinds  map[xds.Type]*holding
	fence  int                // which of the fences is next
	talk   conversation       // nil while not connected
	cancel context.CancelFunc // ends it
}

// holding is what a client wants and holds of a type.
type holding struct {
	typ    xds.Type
	wish   wish
	open   bool // something was said of it on this stream
	legacy bool // everything is wanted, and no name was ever given
	holds  map[string]resource
	// version and nonce are those of the last response.
	version, nonce string
	// partial says that not everything was wanted when the last response came, or since.
	partial bool
}

// resource is one that a client was sent.
type resource struct{ name, version, content string }

// request is one in either protocol.
type request struct {
	typ            xds.Type
	version, nonce string
	// names are all that are wanted (state of the world).
	names []string
	// subscribe and unsubscribe are what changes, held what the client has from before (delta).
	subscribe, unsubscribe []string
	held                   map[string]string
}

// response is one in either protocol.
type response struct {
	typ            xds.Type
	version, nonce string
	resources      []resource
	removed        []string // delta
}

// conversation is a stream of either protocol.
type conversation interface {
	send(request) error
	receive() (response, error)
}

// complete says whether a response of a type under the state of the world holds everything that is wanted.
func complete(t xds.Type) bool { return t == xds.TypeCluster || t == xds.TypeListener }

func (h *holder) kind(t xds.Type) *holding {
	if h.kinds[t] == nil {
		h.kinds[t] = &holding{typ: t, holds: map[string]resource{}}
	}
	return h.kinds[t]
}

// want changes what the client wants of a type. It lets go at once of what it does not want any more.
func (h *holder) want(t xds.Type, after wish) {
	k := h.kind(t)
	before := k.wish.list()
	k.wish, k.partial = after, k.partial || !after.all
	for name := range k.holds {
		if !after.has(name) {
			delete(k.holds, name)
		}
	}
	switch {
	case h.talk == nil:
	case !k.open:
		h.open(k)
	default:
		k.legacy = k.legacy && len(after.names) == 0
		h.say(k, request{subscribe: without(after.list(), before), unsubscribe: without(before, after.list())})
	}
}

// open sends the first request of a type, if there is anything to ask for.
func (h *holder) open(k *holding) {
	names := k.wish.list()
	if len(names) == 0 {
		return
	}
	k.open, k.legacy = true, k.wish.all && k.wish.implied && len(k.wish.names) == 0
	if k.wish.all && k.partial {
		k.version = "" // a server may take it for the version of everything, and say nothing
	}
	if k.legacy {
		names = nil
	}
	first := request{subscribe: names, held: map[string]string{}}
	for name, r := range k.holds {
		first.held[name] = r.version
	}
	h.say(k, first)
}

// say completes a request and sends it.
func (h *holder) say(k *holding, r request) {
	r.typ, r.version, r.nonce = k.typ, k.version, k.nonce
	if !k.legacy {
		r.names = k.wish.list()
	}
	if err := h.talk.send(r); err != nil {
		h.t.Fatal(err)
	}
}

// hear takes one response and accepts it.
func (h *holder) hear() xds.Type {
	r, err := h.talk.receive()
	if err != nil {
		h.t.Fatalf("the stream ended: %s", err.Error())
	}
	k := h.kind(r.typ)
	if h.full && complete(r.typ) {
		clear(k.holds)
	}
	for _, res := range r.resources {
		if k.wish.has(res.name) {
			k.holds[res.name] = res
		}
	}
	for _, name := range r.removed {
		delete(k.holds, name)
	}
	k.version, k.nonce, k.partial = r.version, r.nonce, !k.wish.all
	h.say(k, request{})
	return r.typ
}

// connect opens a stream and asks for all that is wanted.
func (h *holder) connect() {
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	h.cancel = cancel
	h.talk = h.start(ctx)
	for _, t := range compared {
		h.open(h.kind(t))
	}
}

// disconnect ends the stream. A client that keeps nothing is a new one.
func (h *holder) disconnect(keeps bool) {
	h.cancel()
	h.talk = nil
	delete(h.kinds, fenceType)
	for _, k := range h.kinds {
		k.open, k.legacy, k.nonce = false, false, ""
		if !keeps {
			clear(k.holds)
		}
		if !keeps || h.forgets {
			k.version = ""
		}
	}
}

// Fences are resources that are always there, of a type of their own. A server answers a client that begins to want one after
// it has worked in all that the client said before.
const fenceType = xds.TypeRuntime

var fences = [2]string{"fence-0", "fence-1"}

// rest waits until the server has nothing to say: it has worked in all that the client said and has said nothing else meanwhile.
func (h *holder) rest() {
	h.cross()
	for rounds := 0; h.cross() > 0; rounds++ {
		if rounds > 100 {
			h.t.Fatal("the server does not come to rest")
		}
	}
}

// cross asks for the other fence, and counts what it is sent until that comes.
func (h *holder) cross() (others int) {
	h.fence = 1 - h.fence
	h.want(fenceType, wish{names: []string{fences[h.fence]}})
	for len(h.kind(fenceType).holds) == 0 {
		if h.hear() != fenceType {
			others++
		}
	}
	return others
}

// start opens a stream of the holder's protocol.
func (h *holder) start(ctx context.Context) conversation {
	var talk conversation
	var err error
	if h.full {
		var s fullStream
		s.stream, err = h.ads.StreamAggregatedResources(ctx)
		talk = s
	} else {
		var s deltaStream
		s.stream, err = h.ads.DeltaAggregatedResources(ctx)
		talk = s
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return talk
}

type deltaStream struct {
	stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
}

func (s deltaStream) send(r request) error {
	return s.stream.Send(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: string(r.typ), ResponseNonce: r.nonce,
		ResourceNamesSubscribe: r.subscribe, ResourceNamesUnsubscribe: r.unsubscribe, InitialResourceVersions: r.held})
}

func (s deltaStream) receive() (response, error) {
	m, err := s.stream.Recv()
	if err != nil {
		return response{}, err
	}
	r := response{typ: xds.Type(m.GetTypeUrl()), nonce: m.GetNonce(), removed: m.GetRemovedResources()}
	for _, res := range m.GetResources() {
		r.resources = append(r.resources, resource{res.GetName(), res.GetVersion(), string(res.GetResource().GetValue())})
	}
	return r, nil
}

type fullStream struct {
	stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient
}

func (s fullStream) send(r request) error {
	return s.stream.Send(&discovery.DiscoveryRequest{Node: node, TypeUrl: string(r.typ), ResponseNonce: r.nonce, VersionInfo: r.version, ResourceNames: r.names})
}

func (s fullStream) receive() (response, error) {
	m, err := s.stream.Recv()
	if err != nil {
		return response{}, err
	}
	r := response{typ: xds.Type(m.GetTypeUrl()), nonce: m.GetNonce(), version: m.GetVersionInfo()}
	for _, packed := range m.GetResources() {
		name, err := nameOf(packed)
		if err != nil {
			return response{}, err
		}
		r.resources = append(r.resources, resource{name: name, content: string(packed.GetValue())})
	}
	return r, nil
}

func nameOf(packed *anypb.Any) (string, error) {
	m, err := packed.UnmarshalNew()
	return stockcache.GetResourceName(m), err
}
