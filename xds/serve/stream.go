package serve

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
)

// codec speaks one protocol on one stream.
type codec interface {
	receive() (incoming, error)
	// send returns how many bytes of resources it sent.
	send(response) (int, error)
}

// incoming is a request and the node that came with it, if any.
type incoming struct {
	node    *core.Node
	request request
}

// stream is one client's stream. run's goroutine owns everything but the proxy's status.
type stream struct {
	server  *Server
	codec   codec
	session *session
	watch   *cache.Watch
	proxy   *proxy
	newest  *cache.Published
}

// run serves a stream until it ends. The receiving goroutine ends with the stream's context, which gRPC cancels when the
// handler returns.
func (s *Server) run(ctx context.Context, c codec, full bool) error {
	requests, ended := make(chan incoming), make(chan error, 1)
	go receive(ctx, c, requests, ended)
	st := &stream{server: s, codec: c, session: newSession(full)}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.draining:
		return errDraining
	case err := <-ended:
		return endOf(err)
	case in := <-requests:
		if err := st.identify(in.node, full); err != nil {
			return err
		}
		defer st.watch.Close()
		defer s.forget(st.proxy)
		if err := st.handle(in.request); err != nil {
			return err
		}
	}
	return st.loop(ctx, requests, ended)
}

var errDraining = status.Error(codes.Unavailable, "this replica is shutting down: connect to another")

// receive hands on what the client says until the stream ends.
func receive(ctx context.Context, c codec, requests chan<- incoming, ended chan<- error) {
	for {
		in, err := c.receive()
		if err != nil {
			ended <- err
			return
		}
		select {
		case requests <- in:
		case <-ctx.Done():
			return
		}
	}
}

// endOf is nil where the client closed the stream in order.
func endOf(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// identify finds the viewpoint that the node claims and begins to watch it.
func (st *stream) identify(node *core.Node, full bool) error {
	viewpoint, err := Viewpoint(node, st.server.config.RegionOf)
	if err != nil {
		st.server.log.Warn("proxy turned away", "error", err)
		return err
	}
	st.proxy = st.server.remember(node, viewpoint, full)
	st.watch = st.server.config.Cache.Watch(viewpoint.ID())
	st.server.config.OnViewpoint(viewpoint)
	st.newest = st.watch.Newest()
	st.session.now = time.Now()
	if st.newest != nil {
		st.session.target = st.newest.Snapshot
	}
	return nil
}

// loop works in requests and new snapshots, one at a time.
func (st *stream) loop(ctx context.Context, requests <-chan incoming, ended <-chan error) error {
	patience := time.NewTimer(st.server.config.Patience)
	defer patience.Stop()
	for {
		st.arm(patience)
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-st.server.draining:
			return errDraining
		case err := <-ended:
			return endOf(err)
		case in := <-requests:
			err = st.handle(in.request)
		case <-st.watch.Changed():
			st.newest = st.watch.Newest()
			st.session.now = time.Now()
			err = st.deliver(st.session.update(st.newest.Snapshot))
		case <-patience.C:
			st.session.now = time.Now()
			err = st.deliver(st.session.hurry(st.server.config.Patience))
		}
		if err != nil {
			return err
		}
	}
}

// arm sets the timer to when the client will have left a response unanswered for too long.
func (st *stream) arm(patience *time.Timer) {
	if due := st.session.due(st.server.config.Patience); due.IsZero() {
		patience.Stop()
	} else {
		patience.Reset(time.Until(due))
	}
}

// handle works one request in.
func (st *stream) handle(r request) error {
	if !known(r.typ) {
		st.server.log.Debug("type not served", "type", clip(string(r.typ)), "proxy", st.proxy.node)
		return nil // as the protocol wants it: a type that a server doesn't know has no resources
	}
	k := st.session.kinds[r.typ]
	answers := k != nil && k.offerOf(r.nonce) >= 0
	st.session.now = time.Now()
	out := st.session.handle(r)
	if answers {
		st.answered(st.session.kinds[r.typ], r)
	}
	return st.deliver(out)
}

func known(t xds.Type) bool { return slices.Contains(xds.Types(), t) }

// answered reports an answer to the operator's eyes.
func (st *stream) answered(k *kind, r request) {
	a := Answer{Viewpoint: st.proxy.viewpoint.ID(), Type: k.typ, Refused: r.refusal != ""}
	if !a.Refused && st.newest != nil && st.newest.Snapshot.Version(k.typ) == k.accepted {
		a.Since = st.newest.Since
	}
	if a.Refused {
		st.server.log.Error("proxy refused configuration", "proxy", st.proxy.node, "viewpoint", string(a.Viewpoint),
			"type", k.typ.Short(), "resources", nameSome(k.refused), "reason", r.refusal)
	}
	st.server.config.OnAnswer(a)
}

// nameSome names the first few resources, so that a log line stays a line.
func nameSome(resources []*xds.Resource) []string {
	const most = 8
	names := make([]string, 0, most)
	for _, r := range resources[:min(len(resources), most)] {
		names = append(names, r.Name)
	}
	return names
}

// deliver sends responses and notes where the proxy now stands.
func (st *stream) deliver(out []response) error {
	for _, r := range out {
		size, err := st.codec.send(r)
		if err != nil {
			return err
		}
		st.server.config.OnPush(Push{Viewpoint: st.proxy.viewpoint.ID(), Type: r.typ, Resources: len(r.resources), Removed: len(r.removed), Bytes: size})
	}
	st.proxy.note(st.session)
	return nil
}

// refusalOf bounds what a client says was wrong.
func refusalOf(message string) string {
	const most = 2000
	switch {
	case message == "":
		return "no reason given"
	case len(message) > most:
		return strings.ToValidUTF8(message[:most], "") + "…"
	}
	return message
}

// Push is one response that was sent.
type Push struct {
	Viewpoint world.ViewpointID
	Type      xds.Type
	// Resources and Removed count what it held; Bytes is the size of the resources.
	Resources, Removed, Bytes int
}

// Answer is a client's answer to a response.
type Answer struct {
	Viewpoint world.ViewpointID
	Type      xds.Type
	Refused   bool
	// Since is when the oldest change in what was accepted came in; zero where it was not the newest.
	Since time.Time
}
