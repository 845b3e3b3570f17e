package serve

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
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

// proxy is a connected proxy. types is replaced by the stream's goroutine and read by anyone; the rest is set once.
type proxy struct {
	node      string
	viewpoint world.Viewpoint
	version   string
	full      bool
	connected time.Time

	types atomic.Pointer[[]TypeStatus]
}

func newProxy(node *core.Node, v world.Viewpoint, full bool) *proxy {
	p := &proxy{node: node.GetId(), viewpoint: v, version: agentOf(node), full: full, connected: time.Now()}
	p.types.Store(&[]TypeStatus{})
	return p
}

func agentOf(node *core.Node) string {
	if v := node.GetUserAgentBuildVersion().GetVersion(); v != nil {
		return fmt.Sprintf("%s %d.%d.%d", node.GetUserAgentName(), v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
	}
	return node.GetUserAgentName() + " " + node.GetUserAgentVersion()
}

// note takes down where a session stands.
func (p *proxy) note(s *session) {
	types := make([]TypeStatus, 0, len(s.kinds))
	for _, t := range xds.Types() {
		if k := s.kinds[t]; k != nil {
			types = append(types, k.status(s.target))
		}
	}
	p.types.Store(&types)
}

func (k *kind) status(target *xds.Snapshot) TypeStatus {
	t := TypeStatus{Type: k.typ.Short(), State: Synced, Accepted: k.accepted, Offered: k.offered}
	switch {
	case k.refusal != "":
		t.State, t.Refusal, t.Resources = Nacked, k.refusal, nameSome(k.refused)
	case !k.synced, len(k.outstanding) > 0, len(k.lingering) > 0, k.version != target.Version(k.typ):
		t.State = Pending
	}
	return t
}

// Status is every connected proxy, sorted by viewpoint and node.
func (s *Server) Status() []ProxyStatus {
	s.mu.Lock()
	proxies := make([]*proxy, 0, len(s.proxies))
	for p := range s.proxies {
		proxies = append(proxies, p)
	}
	s.mu.Unlock()
	all := make([]ProxyStatus, len(proxies))
	for i, p := range proxies {
		all[i] = p.status()
	}
	slices.SortFunc(all, func(a, b ProxyStatus) int {
		return cmp.Or(cmp.Compare(a.Viewpoint, b.Viewpoint), cmp.Compare(a.Node, b.Node), a.Connected.Compare(b.Connected))
	})
	return all
}

func (p *proxy) status() ProxyStatus {
	st := ProxyStatus{Node: p.node, Viewpoint: p.viewpoint.ID(), Version: p.version, Protocol: "delta", Connected: p.connected, State: Synced, Types: *p.types.Load()}
	if p.full {
		st.Protocol = "sotw"
	}
	for _, t := range st.Types {
		switch {
		case t.State == Nacked:
			st.State = Nacked
		case t.State == Pending && st.State == Synced:
			st.State = Pending
		}
	}
	if len(st.Types) == 0 {
		st.State = Pending
	}
	return st
}
