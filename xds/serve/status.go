package serve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// State is how a proxy stands to what is published for it.
type State string

// The states of a proxy or of one of its types.
const (
	// Synced: it has accepted the newest version.
	Synced State = "synced"
	// Pending: a newer version is on its way, or waits for the proxy's answer.
	Pending State = "pending"
	// Nacked: it has refused something, and has accepted nothing since in its place.
	Nacked State = "nacked"
)

// ProxyStatus is what one connected proxy holds.
type ProxyStatus struct {
	Node      string            `json:"node"`
	Viewpoint world.ViewpointID `json:"viewpoint"`
	// Version is the proxy's own, such as "envoy 1.40.0".
	Version   string    `json:"version"`
	Protocol  string    `json:"protocol"`
	Connected time.Time `json:"connected"`
	State     State     `json:"state"`
	// Stale says that what is published for the proxy is from before the control plane started.
	Stale bool `json:"stale,omitempty"`
	// Types are those that the proxy asked for, in the order of xds.Types.
	Types []TypeStatus `json:"types"`
}

// TypeStatus is what a proxy holds of one type.
type TypeStatus struct {
	Type  string `json:"type"`
	State State  `json:"state"`
	// Accepted is the version that the proxy accepted last, Offered the one that it was sent last.
	Accepted string `json:"accepted,omitempty"`
	Offered  string `json:"offered,omitempty"`
	// Refusal is why the proxy refused what it was offered, and Resources the first few of what that was.
	Refusal   string   `json:"refusal,omitempty"`
	Resources []string `json:"resources,omitempty"`
}

// proxy is who is at the other end of a stream. It is set once.
type proxy struct {
	node      string
	identity  string
	viewpoint world.Viewpoint
	version   string
	full      bool
	connected time.Time
}

func newProxy(node *core.Node, v world.Viewpoint, identity string, full bool) proxy {
	return proxy{node: node.GetId(), identity: identity, viewpoint: v, version: agentOf(node), full: full, connected: time.Now()}
}

func agentOf(node *core.Node) string {
	if v := node.GetUserAgentBuildVersion().GetVersion(); v != nil {
		return fmt.Sprintf("%s %d.%d.%d", node.GetUserAgentName(), v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
	}
	return node.GetUserAgentName() + " " + node.GetUserAgentVersion()
}

// status is what a client holds of a type, where newest is published for it.
func (k *kind) status(newest *xds.Snapshot) TypeStatus {
	t := TypeStatus{Type: k.typ.Short(), State: Synced, Accepted: k.accepted, Offered: k.offered}
	switch {
	case k.refusal != "":
		t.State, t.Refusal, t.Resources = Nacked, k.refusal, nameSome(k.refused)
	case !k.synced, len(k.outstanding) > 0, len(k.lingering) > 0, k.sent != newest.Of(k.typ):
		t.State = Pending
	}
	return t
}

// Status is every connected proxy, sorted by viewpoint and node.
func (s *Server) Status() []ProxyStatus {
	streams := s.connected()
	all := make([]ProxyStatus, len(streams))
	for i, st := range streams {
		all[i] = st.status()
	}
	return all
}

// connected are the streams of proxies that have said who they are, sorted by viewpoint and node.
func (s *Server) connected() []*stream {
	s.mu.Lock()
	streams := slices.Collect(maps.Keys(s.streams))
	s.mu.Unlock()
	slices.SortFunc(streams, func(a, b *stream) int {
		return cmp.Or(cmp.Compare(a.group.viewpoint, b.group.viewpoint), cmp.Compare(a.proxy.node, b.proxy.node), a.proxy.connected.Compare(b.proxy.connected))
	})
	return streams
}

func (st *stream) status() ProxyStatus {
	p := st.proxy
	out := ProxyStatus{Node: p.node, Viewpoint: st.group.viewpoint, Version: p.version, Protocol: "delta", Connected: p.connected, State: Synced, Types: []TypeStatus{}}
	if p.full {
		out.Protocol = "sotw"
	}
	aim := st.aim.Load()
	out.Stale = aim != nil && aim.Stale
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, k := range st.session.kinds {
		var newest *xds.Snapshot
		if aim != nil {
			newest = aim.Snapshot
		}
		t := k.status(newest)
		out.Types = append(out.Types, t)
		switch {
		case t.State == Nacked:
			out.State = Nacked
		case t.State == Pending && out.State == Synced:
			out.State = Pending
		}
	}
	if len(out.Types) == 0 {
		out.State = Pending
	}
	return out
}
