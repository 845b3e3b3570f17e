package verify

import (
	"net/netip"
	"slices"
	"testing"

	xdscore "github.com/cncf/xds/go/xds/core/v3"
	match "github.com/cncf/xds/go/xds/type/matcher/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matching "github.com/envoyproxy/go-control-plane/envoy/extensions/common/matching/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

const (
	edgeName   = "edge/edge/http"
	classEU    = "class/llama/eu-people"
	classAny   = "class/llama/any"
	poolHere   = "pool/llama/fra-1"
	tcpEdge    = "tcp/edge/http/vectors"
	virginiaIP = "127.20.1.1"
	virginiaGW = "127.20.0.1"
)

func pack(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err) // a test's own message
	}
	return a
}

func lb(address string, port uint32) *endpoint.LbEndpoint {
	return &endpoint.LbEndpoint{HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{Address: socketTo(address, port)}}}
}

func socketTo(address string, port uint32) *core.Address {
	return &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{Address: address, PortSpecifier: &core.SocketAddress_PortValue{PortValue: port}}}}
}

func internalTo(listener string) *endpoint.LbEndpoint {
	return &endpoint.LbEndpoint{HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{Address: &core.Address{Address: &core.Address_EnvoyInternalAddress{
		EnvoyInternalAddress: &core.EnvoyInternalAddress{AddressNameSpecifier: &core.EnvoyInternalAddress_ServerListenerName{ServerListenerName: listener}}}}}}}
}

func standby(priority uint32, region string, e *endpoint.LbEndpoint) *endpoint.LocalityLbEndpoints {
	return &endpoint.LocalityLbEndpoints{Priority: priority, Locality: &core.Locality{Region: region, Zone: "x"}, LoadBalancingWeight: wrapperspb.UInt32(1), LbEndpoints: []*endpoint.LbEndpoint{e}}
}

// manager changes a listener's HTTP connection manager.
func manager(t testing.TB, l *listener.Listener, fault func(*hcm.HttpConnectionManager)) {
	t.Helper()
	for _, chain := range l.FilterChains {
		for _, f := range chain.Filters {
			m := &hcm.HttpConnectionManager{}
			if f.GetTypedConfig().UnmarshalTo(m) == nil {
				fault(m)
				f.ConfigType = &listener.Filter_TypedConfig{TypedConfig: pack(m)}
			}
		}
	}
}

// everyRoute changes every route in a route configuration that leads to a cluster.
func everyRoute(m *match.Matcher, fault func(*route.Route)) {
	each := func(o *match.Matcher_OnMatch) {
		if o.GetMatcher() != nil {
			everyRoute(o.GetMatcher(), fault)
		}
		r := &route.Route{}
		if o.GetAction() != nil && o.GetAction().GetTypedConfig().UnmarshalTo(r) == nil {
			if r.GetRoute() != nil {
				fault(r)
				o.GetAction().TypedConfig = pack(r)
			}
		}
	}
	each(m.GetOnNoMatch())
	for _, f := range m.GetMatcherList().GetMatchers() {
		each(f.GetOnMatch())
	}
	for _, o := range m.GetMatcherTree().GetExactMatchMap().GetMap() {
		each(o)
	}
	for _, o := range m.GetMatcherTree().GetPrefixMatchMap().GetMap() {
		each(o)
	}
}

// table changes a composite filter's table of groups.
func table(t testing.TB, l *listener.Listener, filter string, fault func(*match.Matcher)) {
	t.Helper()
	manager(t, l, func(m *hcm.HttpConnectionManager) {
		for _, f := range m.HttpFilters {
			w := &matching.ExtensionWithMatcher{}
			if f.Name == filter && f.GetTypedConfig().UnmarshalTo(w) == nil {
				fault(w.XdsMatcher)
				f.ConfigType = &hcm.HttpFilter_TypedConfig{TypedConfig: pack(w)}
			}
		}
	})
}

// exact finds the first exact table in a tree.
func exact(m *match.Matcher) map[string]*match.Matcher_OnMatch {
	if found := m.GetMatcherTree().GetExactMatchMap().GetMap(); found != nil {
		return found
	}
	for _, f := range m.GetMatcherList().GetMatchers() {
		if f.GetOnMatch().GetMatcher() != nil {
			return exact(f.GetOnMatch().GetMatcher())
		}
	}
	return nil
}

// mesh is a mesh of two gateways, with what they are sent, and nothing wrong yet.
type mesh struct {
	t                   *testing.T
	world               *world.World
	frankfurt, virginia *xds.Snapshot
}

// faulty is what frankfurt is sent with one fault in it, and the codes of what must be found, sorted.
type faulty struct {
	snapshot *xds.Snapshot
	want     []Code
}

type assignment = *endpoint.ClusterLoadAssignment

func (m mesh) eds(name string, fault func(assignment)) *xds.Snapshot {
	return change(m.t, m.frankfurt, xds.TypeEndpoint, name, fault)
}

func (m mesh) cds(name string, fault func(*cluster.Cluster)) *xds.Snapshot {
	return change(m.t, m.frankfurt, xds.TypeCluster, name, fault)
}

func (m mesh) lds(name string, fault func(*listener.Listener)) *xds.Snapshot {
	return change(m.t, m.frankfurt, xds.TypeListener, name, fault)
}

func (m mesh) rds(name string, fault func(*route.RouteConfiguration)) *xds.Snapshot {
	return change(m.t, m.frankfurt, xds.TypeRoute, name, fault)
}

// http changes the connection manager of the edge.
func (m mesh) http(fault func(*hcm.HttpConnectionManager)) *xds.Snapshot {
	return m.lds(edgeName, func(l *listener.Listener) { manager(m.t, l, fault) })
}

// filter changes one HTTP filter of the edge.
func (m mesh) filter(name string, config proto.Message, fault func()) *xds.Snapshot {
	return m.http(func(h *hcm.HttpConnectionManager) {
		for _, f := range h.HttpFilters {
			if f.Name == name && f.GetTypedConfig().UnmarshalTo(config) == nil {
				fault()
				f.ConfigType = &hcm.HttpFilter_TypedConfig{TypedConfig: pack(config)}
			}
		}
	})
}

// routes changes every route of the edge that leads to a cluster.
func (m mesh) routes(fault func(*route.Route)) *xds.Snapshot {
	return m.rds(edgeName, func(c *route.RouteConfiguration) {
		for _, v := range c.VirtualHosts {
			everyRoute(v.Matcher, fault)
		}
	})
}

// route changes one route of the edge.
func (m mesh) route(name string, fault func(*route.Route)) *xds.Snapshot {
	return m.routes(func(r *route.Route) {
		if r.Name == name {
			fault(r)
		}
	})
}

// tables changes what a composite filter of the edge looks groups up in.
func (m mesh) tables(filter string, fault func(*match.Matcher)) *xds.Snapshot {
	return m.lds(edgeName, func(l *listener.Listener) { table(m.t, l, filter, fault) })
}

// Each fault is put into a snapshot that is otherwise right; the check must find just the kinds of violation that it is.
func TestFaultsAreFound(t *testing.T) {
	w, snapshots := load(t, "testdata/mesh.yaml")
	m := mesh{t, w, snapshotOf(t, snapshots, "gateway/frankfurt/fra-1"), snapshotOf(t, snapshots, "gateway/virginia/iad-1")}
	count := 0
	for _, faults := range []map[string]faulty{assignmentFaults(m), clusterFaults(m), routeFaults(m), filterFaults(m), innerFaults(m), eastWestFaults(m)} {
		for name, c := range faults {
			count++
			t.Run(name, func(t *testing.T) {
				violations := Check(w, c.snapshot)
				if got := codesOf(violations); !slices.Equal(got, c.want) {
					t.Errorf("want %s, got %s: %v", c.want, got, violations)
				}
			})
		}
	}
	if count < 100 {
		t.Errorf("only %d faults", count)
	}
}

// codesOf are the codes of violations, sorted, each once.
func codesOf(violations []Violation) []Code {
	var codes []Code
	for _, v := range violations {
		codes = append(codes, v.Code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func renamed(r *xds.Resource, name string) *xds.Resource {
	return xds.Serialised(r.Type, name, r.Version, r.Bytes)
}

// says are the headers by which a route tells for which service and class a request is.
func says(service, class string) []*core.HeaderValueOption {
	var all []*core.HeaderValueOption
	for header, value := range map[string]string{xds.HeaderService: service, xds.HeaderClass: class} {
		all = append(all, &core.HeaderValueOption{Header: &core.HeaderValue{Key: header, Value: value}, AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD})
	}
	return all
}

func action(cluster string) *xdscore.TypedExtensionConfig {
	return &xdscore.TypedExtensionConfig{Name: "out", TypedConfig: pack(&route.Route{Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: "/"}},
		Action: &route.Route_Route{Route: &route.RouteAction{ClusterSpecifier: &route.RouteAction_Cluster{Cluster: cluster}}}})}
}

// other is what a table does with values that it does not name.
func other(m *match.Matcher) *match.Matcher_OnMatch {
	return m.GetMatcherList().GetMatchers()[0].GetOnMatch().GetMatcher().GetOnNoMatch()
}

func tcpTo(l *listener.Listener, cluster string) {
	p := &tcpproxy.TcpProxy{}
	if l.FilterChains[0].Filters[0].GetTypedConfig().UnmarshalTo(p) == nil {
		p.ClusterSpecifier = &tcpproxy.TcpProxy_Cluster{Cluster: cluster}
		l.FilterChains[0].Filters[0].ConfigType = &listener.Filter_TypedConfig{TypedConfig: pack(p)}
	}
}

func socketTLS(l *listener.Listener, fault func(*tls.DownstreamTlsContext)) {
	c := &tls.DownstreamTlsContext{}
	socket := l.FilterChains[0].TransportSocket
	if socket.GetTypedConfig().UnmarshalTo(c) == nil {
		fault(c)
		socket.ConfigType = &core.TransportSocket_TypedConfig{TypedConfig: pack(c)}
	}
}

func TestViolationNamesRouteAddressAndPolicy(t *testing.T) {
	v := Violation{Code: OutsideBoundary, Viewpoint: "gateway/frankfurt/fra-1", Resource: edgeName, Route: "llama/eu-people", Cluster: "gateway/iad-1",
		Address: netip.MustParseAddrPort("127.20.0.1:9443"), Region: "virginia", Policies: world.ClassID("eu-people").Rules(), Detail: "country DE, tenant none, label none"}
	const want = "gateway/frankfurt/fra-1: outside_boundary, resource edge/edge/http, route llama/eu-people, cluster gateway/iad-1, " +
		"address 127.20.0.1:9443 in region virginia, against policy eu-people (country DE, tenant none, label none); not published, proxies keep the last good configuration"
	if v.String() != want {
		t.Errorf("got  %s\nwant %s", v, want)
	}
}
