package serve

import (
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
)

// stream is one client's stream. What came in is worked in by the goroutine that receives, what was published by one that
// lives as long as that takes: whoever has the turn works out what is to be sent and sends it.
type stream struct {
	// Set once, before anyone else knows the stream.
	server *Server
	out    grpc.ServerStream
	fields fields
	full   bool     // state of the world
	only   xds.Type // the one type of a stream that is not aggregated
	ended  chan error
	known  chan struct{} // closed when the client has said who it is

	// Set once, before known is closed.
	proxy     proxy
	group     *group
	lifetimes bool
	limiter   *rate.Limiter

	turn sync.Mutex // held while responses are worked out and sent, so that they go in that order

	mu      sync.Mutex
	session *session // under mu

	joined, left bool // under server.mu

	// Atomic.
	aim      atomic.Pointer[cache.Published] // what the client is to be brought to; nil before the first
	waking   atomic.Bool                     // a push is due
	deadline atomic.Int64                    // when the session has something to do by itself, in Unix nanoseconds; 0 never
	sending  atomic.Int64                    // since when a response has been on its way, in Unix nanoseconds; 0 where none is
}

var (
	errDraining = status.Error(codes.Unavailable, "this replica is shutting down: connect to another")
	errSilent   = status.Error(codes.DeadlineExceeded, "no first request came")
	errSlow     = status.Error(codes.ResourceExhausted, "a response was not read in time")
)

// silence is how long a client may take to say who it is.
const silence = 10 * time.Second

// run serves a stream until it ends. The receiving goroutine ends with the stream, which gRPC ends when the handler returns.
func (s *Server) run(out grpc.ServerStream, full bool, only xds.Type) error {
	st := &stream{server: s, out: out, full: full, only: only, fields: deltaFields, session: newSession(full, s.names),
		ended: make(chan error, 1), known: make(chan struct{})}
	if full {
		st.fields = stateFields
	}
	defer s.leave(st)
	go st.receive()
	late := time.NewTimer(silence)
	defer late.Stop()
	known := st.known
	for {
		select {
		case <-out.Context().Done():
			return out.Context().Err()
		case <-s.draining:
			return errDraining
		case err := <-st.ended:
			return err
		case <-known:
			known = nil
			late.Stop()
		case <-late.C:
			s.config.OnRejected(RejectedSilent)
			return errSilent
		}
	}
}

// end ends the stream; the first reason counts.
func (st *stream) end(err error) {
	select {
	case st.ended <- err:
	default:
	}
}

// receive works in what the client says until the stream ends.
func (st *stream) receive() {
	var m message
	for {
		if err := st.out.RecvMsg(&m); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil // the client closed the stream in order
			}
			st.end(err)
			return
		}
		if err := st.take(m.bytes); err != nil {
			st.end(err)
			return
		}
		m.shrink()
	}
}

// take works one request in.
func (st *stream) take(data []byte) error {
	in, err := st.fields.parse(data, st.server.names)
	if err != nil {
		st.server.config.OnRejected(RejectedMalformed)
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if st.group == nil {
		if err := st.identify(in.node); err != nil {
			return err
		}
	} else if err := st.limiter.Wait(st.out.Context()); err != nil {
		return err
	}
	if in.request.typ == "" {
		in.request.typ = st.only
	}
	if in.request.typ == "" || st.only != "" && in.request.typ != st.only {
		return status.Errorf(codes.InvalidArgument, "type_url is %s, and this service is for %s", clip(string(in.request.typ)), clip(string(st.only)))
	}
	return st.handle(in.request)
}

// identify finds the viewpoint that the node claims, and joins those who share it.
func (st *stream) identify(node *core.Node) error {
	s := st.server
	viewpoint, err := s.config.Viewpoint(node)
	identity := node.GetId()
	if err == nil && s.config.Authenticate != nil {
		identity, err = s.config.Authenticate(st.out.Context(), viewpoint)
	}
	if err != nil {
		s.config.OnRejected(RejectedIdentity)
		s.log.Warn("proxy turned away", "node", clip(node.GetId()), "error", err)
		return err
	}
	st.proxy = newProxy(node, viewpoint, identity, st.full)
	st.lifetimes = !st.full || understandsLifetimes(node)
	st.limiter = rate.NewLimiter(rate.Limit(s.config.Limits.RequestsPerSecond), s.config.Limits.RequestBurst)
	st.session.lifetimes = st.lifetimes
	if err := s.join(st); err != nil {
		return err
	}
	close(st.known)
	s.config.OnViewpoint(viewpoint)
	return nil
}

// join makes a stream one of its viewpoint's, within what its identity may have.
func (s *Server) join(st *stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.left {
		return errDraining
	}
	if most := s.config.Limits.StreamsPerIdentity; s.perID[st.proxy.identity] >= most {
		s.config.OnRejected(RejectedStreams)
		return status.Errorf(codes.ResourceExhausted, "%s has %d streams, which is the most for one identity", clip(st.proxy.identity), most)
	}
	id := st.proxy.viewpoint.ID()
	g := s.groups[id]
	if g == nil {
		if most := s.config.Limits.Viewpoints; len(s.groups) >= most {
			s.config.OnRejected(RejectedStreams)
			return status.Errorf(codes.ResourceExhausted, "%s would be one viewpoint more than the %d that are served", clip(string(id)), most)
		}
		g = s.newGroup(id)
		s.groups[id] = g
	}
	st.group, st.joined = g, true
	st.session.diff = g.changes.diff
	s.perID[st.proxy.identity]++
	s.streams[st] = struct{}{}
	g.join(st)
	return nil
}

// leave forgets a stream.
func (s *Server) leave(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.left = true
	if !st.joined {
		return
	}
	delete(s.streams, st)
	if s.perID[st.proxy.identity]--; s.perID[st.proxy.identity] == 0 {
		delete(s.perID, st.proxy.identity)
	}
	if st.group.leave(st) {
		st.group.watch.Close()
		delete(s.groups, st.group.viewpoint)
	}
}

// sweep does what only time moves. It does not block.
func (st *stream) sweep(now time.Time) {
	if since := st.sending.Load(); since != 0 && now.UnixNano()-since > int64(st.server.config.SendTimeout) {
		st.sending.Store(0) // once is enough
		st.server.config.OnRejected(RejectedSlow)
		st.server.log.Warn("proxy cut off: it does not read", "proxy", st.proxy.node, "viewpoint", string(st.proxy.viewpoint.ID()))
		st.end(errSlow)
		st.server.connections.cut(st.out.Context())
		return
	}
	if due := st.deadline.Load(); due != 0 && now.UnixNano() >= due {
		st.deadline.Store(0)
		st.wake()
	}
}

// wake lets the stream be brought up to what is newest for it. It does not block, and wakes a stream that is being brought up
// already no second time: it will find what is newest then.
func (st *stream) wake() {
	if st.waking.CompareAndSwap(false, true) {
		st.server.pushing.Add(1)
		go st.push()
	}
}

// push brings the client up to what is newest for it.
func (st *stream) push() {
	st.turn.Lock()
	defer st.turn.Unlock()
	st.waking.Store(false)
	st.server.pushing.Add(-1)
	st.mu.Lock()
	st.face(st.aim.Load())
	out := st.session.hurry(st.server.config.Patience)
	st.rest()
	st.mu.Unlock()
	if err := st.send(out); err != nil {
		st.end(err)
	}
}

// face turns the session towards a publication, at the time of now. The caller holds mu.
func (st *stream) face(p *cache.Published) {
	st.session.now = time.Now()
	if p != nil {
		st.session.target, st.session.since = p.Snapshot, p.Since
	}
}

// rest notes when the session next has something to do by itself. The caller holds mu.
func (st *stream) rest() {
	due := st.session.due(st.server.config.Patience)
	if due.IsZero() {
		st.deadline.Store(0)
		return
	}
	st.deadline.Store(due.UnixNano())
}

// handle works one request in, and answers it.
func (st *stream) handle(r request) error {
	st.turn.Lock()
	defer st.turn.Unlock()
	aim := st.aim.Load()
	st.mu.Lock()
	faced := st.session.target
	answered, isAnswer := st.session.answeredBy(r)
	st.face(aim)
	out := st.session.handle(r)
	err := st.server.config.Limits.within(st.session)
	settled := aim != nil && st.session.settledOn(aim.Snapshot)
	refused := st.session.refusedOf(r.typ)
	st.rest()
	st.mu.Unlock()
	if err != nil {
		st.server.config.OnRejected(RejectedNames)
		return err
	}
	if isAnswer {
		st.answered(r, answered, refused)
	}
	if isAnswer && r.refusal != "" {
		st.group.refused(st, faced, refused, r.refusal)
	}
	if settled {
		st.group.settled(st, aim)
	}
	return st.send(out)
}

// answered reports an answer to the operator's eyes.
func (st *stream) answered(r request, o offer, refused []*xds.Resource) {
	a := Answer{Viewpoint: st.proxy.viewpoint.ID(), Type: r.typ, Refused: r.refusal != "", Since: o.since}
	if a.Refused {
		st.server.log.Error("proxy refused configuration", "proxy", st.proxy.node, "viewpoint", string(a.Viewpoint),
			"type", r.typ.Short(), "resources", nameSome(refused), "reason", r.refusal)
	}
	st.server.config.OnAnswer(a)
}

// settledOn says whether the client has accepted all that it asked for of a snapshot.
func (st *stream) settledOn(s *xds.Snapshot) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.session.settledOn(s)
}

// refuses says whether the client stands by a refusal.
func (st *stream) refuses() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.ContainsFunc(st.session.kinds, func(k *kind) bool { return k.refusal != "" })
}

// send sends responses.
func (st *stream) send(out []response) error {
	for i := range out {
		f, size := out[i].encode(st.full, st.lifetimes, st.server.config.Origin)
		st.sending.Store(time.Now().UnixNano())
		err := st.out.SendMsg(f)
		st.sending.Store(0)
		if err != nil {
			return err
		}
		st.server.config.OnPush(Push{Viewpoint: st.proxy.viewpoint.ID(), Type: out[i].typ, Resources: len(out[i].resources), Removed: len(out[i].removed), Bytes: size})
	}
	return nil
}

// understandsLifetimes says whether a client of the state of the world takes resources with a TTL.
func understandsLifetimes(node *core.Node) bool {
	return slices.Contains(node.GetClientFeatures(), "xds.config.resource-in-sotw")
}
