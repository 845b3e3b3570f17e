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
	aggregate "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	matching "github.com/envoyproxy/go-control-plane/envoy/extensions/common/matching/v3"
	composite "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/composite/v3"
	headermutation "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	lua "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstream "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
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

// Each fault is put into a snapshot that is otherwise right; the check must find just the kinds of violation that it is.
func TestFaultsAreFound(t *testing.T) {
	w, snapshots := mesh(t)
	frankfurt, virginia := snapshots[0], snapshots[1]
	type assignment = *endpoint.ClusterLoadAssignment
	eds := func(name string, fault func(assignment)) *xds.Snapshot {
		return change(t, frankfurt, xds.TypeEndpoint, name, fault)
	}
	cds := func(name string, fault func(*cluster.Cluster)) *xds.Snapshot {
		return change(t, frankfurt, xds.TypeCluster, name, fault)
	}
	lds := func(name string, fault func(*listener.Listener)) *xds.Snapshot {
		return change(t, frankfurt, xds.TypeListener, name, fault)
	}
	http := func(fault func(*hcm.HttpConnectionManager)) *xds.Snapshot {
		return lds(edgeName, func(l *listener.Listener) { manager(t, l, fault) })
	}
	rds := func(name string, fault func(*route.RouteConfiguration)) *xds.Snapshot {
		return change(t, frankfurt, xds.TypeRoute, name, fault)
	}
	routes := func(fault func(*route.Route)) *xds.Snapshot {
		return rds(edgeName, func(c *route.RouteConfiguration) {
			for _, v := range c.VirtualHosts {
				everyRoute(v.Matcher, fault)
			}
		})
	}
	tables := func(filter string, fault func(*match.Matcher)) *xds.Snapshot {
		return lds(edgeName, func(l *listener.Listener) { table(t, l, filter, fault) })
	}
	for name, c := range map[string]struct {
		snapshot *xds.Snapshot
		want     []Code
	}{
		"hop abroad at the last priority":     {eds(classEU, func(a assignment) { a.Endpoints = append(a.Endpoints, standby(1, "virginia", internalTo("to/iad-1"))) }), []Code{OutsideBoundary}},
		"server abroad at the last priority":  {eds(classEU, func(a assignment) { a.Endpoints = append(a.Endpoints, standby(1, "virginia", lb(virginiaIP, 8000))) }), []Code{OutsideBoundary}},
		"gateway abroad at the last priority": {eds(classEU, func(a assignment) { a.Endpoints = append(a.Endpoints, standby(1, "virginia", lb(virginiaGW, 9443))) }), []Code{OutsideBoundary, PeerNotAuthenticated, WrongClass}},
		"locality that lies about its region": {eds(classEU, func(a assignment) { a.Endpoints = append(a.Endpoints, standby(1, "frankfurt", lb(virginiaIP, 8000))) }), []Code{OutsideBoundary}},
		"unhealthy server abroad": {eds(classEU, func(a assignment) {
			e := lb(virginiaIP, 8000)
			e.HealthStatus = core.HealthStatus_UNHEALTHY
			a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, e)
		}), []Code{OutsideBoundary}},
		"additional address abroad": {eds(poolHere, func(a assignment) {
			e := a.Endpoints[0].LbEndpoints[0].GetEndpoint()
			e.AdditionalAddresses = []*endpoint.Endpoint_AdditionalAddress{{Address: socketTo(virginiaIP, 8000)}}
		}), []Code{CrossesTwice, OutsideBoundary}},
		"health checks sent abroad": {eds(poolHere, func(a assignment) {
			a.Endpoints[0].LbEndpoints[0].GetEndpoint().HealthCheckConfig = &endpoint.Endpoint_HealthCheckConfig{Address: socketTo(virginiaIP, 8000)}
		}), []Code{CrossesTwice, OutsideBoundary}},
		"server abroad in the pool here": {eds(poolHere, func(a assignment) {
			a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, lb(virginiaIP, 8000))
		}), []Code{CrossesTwice, OutsideBoundary}},
		"address that nobody knows": {eds(poolHere, func(a assignment) {
			a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, lb("127.99.9.9", 80))
		}), []Code{UnknownAddress}},
		"port that nobody knows": {eds(poolHere, func(a assignment) {
			a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, lb(virginiaIP, 8001))
		}), []Code{UnknownAddress}},
		"host name": {eds(poolHere, func(a assignment) {
			a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, lb("example.org", 80))
		}), []Code{NotAnalysable}},
		"pipe": {eds(poolHere, func(a assignment) {
			a.Endpoints[0].LbEndpoints[0].GetEndpoint().Address = &core.Address{Address: &core.Address_Pipe{Pipe: &core.Pipe{Path: "/x"}}}
		}), []Code{NotAnalysable}},
		"hop that is not there":   {eds(classEU, func(a assignment) { a.Endpoints[0].LbEndpoints = []*endpoint.LbEndpoint{internalTo("to/nowhere")} }), []Code{Dangling}},
		"gap between priorities":  {eds(classAny, func(a assignment) { a.Endpoints[len(a.Endpoints)-1].Priority = 7 }), []Code{PriorityGap}},
		"locality without weight": {eds(classAny, func(a assignment) { a.Endpoints[0].LoadBalancingWeight = nil }), []Code{Invalid}},
		"endpoints missing":       {without(frankfurt, xds.TypeEndpoint, classEU), []Code{Dangling}},

		"panic left on": {cds(classEU, func(c *cluster.Cluster) { c.CommonLbConfig.HealthyPanicThreshold = nil }), []Code{PanicEnabled}},
		"panic at half": {cds(classEU, func(c *cluster.Cluster) { c.CommonLbConfig.HealthyPanicThreshold = &envoytype.Percent{Value: 50} }), []Code{PanicEnabled}},
		"DNS cluster": {cds(classEU, func(c *cluster.Cluster) {
			c.ClusterDiscoveryType = &cluster.Cluster_Type{Type: cluster.Cluster_STRICT_DNS}
		}), []Code{NotAnalysable}},
		"original destination": {cds(classEU, func(c *cluster.Cluster) {
			c.ClusterDiscoveryType = &cluster.Cluster_Type{Type: cluster.Cluster_ORIGINAL_DST}
		}), []Code{NotAnalysable}},
		"static server abroad": {cds(classEU, func(c *cluster.Cluster) {
			c.ClusterDiscoveryType, c.EdsClusterConfig = &cluster.Cluster_Type{Type: cluster.Cluster_STATIC}, nil
			c.LoadAssignment = &endpoint.ClusterLoadAssignment{ClusterName: classEU, Endpoints: []*endpoint.LocalityLbEndpoints{standby(0, "frankfurt", lb(virginiaIP, 8000))}}
		}), []Code{OutsideBoundary}},
		"aggregate with a fallback abroad": {cds(classEU, func(c *cluster.Cluster) {
			c.EdsClusterConfig = nil
			c.ClusterDiscoveryType = &cluster.Cluster_ClusterType{ClusterType: &cluster.Cluster_CustomClusterType{Name: "envoy.clusters.aggregate",
				TypedConfig: pack(&aggregate.ClusterConfig{Clusters: []string{poolHere, classAny}})}}
		}), []Code{OutsideBoundary}},
		"custom cluster": {cds(classEU, func(c *cluster.Cluster) {
			c.ClusterDiscoveryType = &cluster.Cluster_ClusterType{ClusterType: &cluster.Cluster_CustomClusterType{Name: "x", TypedConfig: pack(&lua.Lua{})}}
		}), []Code{NotAnalysable}},
		"endpoints of another class": {cds(classEU, func(c *cluster.Cluster) { c.EdsClusterConfig.ServiceName = classAny }), []Code{OutsideBoundary}},
		"endpoints from a file": {cds(classEU, func(c *cluster.Cluster) {
			c.EdsClusterConfig.EdsConfig = &core.ConfigSource{ConfigSourceSpecifier: &core.ConfigSource_PathConfigSource{PathConfigSource: &core.PathConfigSource{Path: "/x"}}}
		}), []Code{NotAnalysable}},
		"subset that falls back to any host": {cds(classEU, func(c *cluster.Cluster) {
			c.LbSubsetConfig = &cluster.Cluster_LbSubsetConfig{FallbackPolicy: cluster.Cluster_LbSubsetConfig_ANY_ENDPOINT}
		}), []Code{NotAnalysable}},
		"load balancer that is not known": {cds(classEU, func(c *cluster.Cluster) {
			c.LoadBalancingPolicy = &cluster.LoadBalancingPolicy{Policies: []*cluster.LoadBalancingPolicy_Policy{{TypedExtensionConfig: &core.TypedExtensionConfig{Name: "x", TypedConfig: pack(&lua.Lua{})}}}}
		}), []Code{NotAnalysable}},
		"cluster that mirrors": {cds(classEU, func(c *cluster.Cluster) {
			c.TypedExtensionProtocolOptions["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"] = pack(&upstream.HttpProtocolOptions{
				UpstreamProtocolOptions: &upstream.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &upstream.HttpProtocolOptions_ExplicitHttpConfig{ProtocolConfig: &upstream.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{}}},
				RequestMirrorPolicies:   []*route.RouteAction_RequestMirrorPolicy{{Cluster: classAny}}})
		}), []Code{NotAnalysable}},
		"cluster missing":           {without(frankfurt, xds.TypeCluster, classEU), []Code{Dangling}},
		"cluster that is not valid": {cds(classEU, func(c *cluster.Cluster) { c.ConnectTimeout.Seconds = -5 }), []Code{Invalid}},

		"route to another class": {routes(func(r *route.Route) {
			if r.Name == "llama/eu-people" {
				r.RequestHeadersToAdd = says("llama", "eu-people")
				r.GetRoute().ClusterSpecifier = &route.RouteAction_Cluster{Cluster: classAny}
			}
		}), []Code{OutsideBoundary}},
		"weighted cluster that leaks": {routes(func(r *route.Route) {
			if r.Name == "llama/eu-people" {
				r.RequestHeadersToAdd = says("llama", "eu-people")
				r.GetRoute().ClusterSpecifier = &route.RouteAction_WeightedClusters{WeightedClusters: &route.WeightedCluster{Clusters: []*route.WeightedCluster_ClusterWeight{
					{Name: classEU, Weight: wrapperspb.UInt32(99)}, {Name: classAny, Weight: wrapperspb.UInt32(1)}}}}
			}
		}), []Code{OutsideBoundary}},
		"mirror abroad": {routes(func(r *route.Route) {
			if r.Name == "features/eu-people" {
				r.GetRoute().RequestMirrorPolicies = []*route.RouteAction_RequestMirrorPolicy{{Cluster: classAny}}
			}
		}), []Code{OutsideBoundary}},
		"cluster chosen by a header": {routes(func(r *route.Route) {
			r.GetRoute().ClusterSpecifier = &route.RouteAction_ClusterHeader{ClusterHeader: "x"}
		}), []Code{NotAnalysable}},
		"redirect":                    {routes(func(r *route.Route) { r.Action = &route.Route_Redirect{Redirect: &route.RedirectAction{}} }), []Code{NotAnalysable}},
		"internal redirects followed": {routes(func(r *route.Route) { r.GetRoute().InternalRedirectPolicy = &route.InternalRedirectPolicy{} }), []Code{NotAnalysable}},
		"route that switches the strip off": {routes(func(r *route.Route) {
			r.TypedPerFilterConfig = map[string]*anypb.Any{"meridian.strip": pack(&headermutation.HeaderMutationPerRoute{})}
		}), []Code{NotAnalysable}},
		"class header of another class": {routes(func(r *route.Route) {
			if r.Name == "features/eu-people" {
				for _, h := range r.RequestHeadersToAdd {
					if h.Header.Key == xds.HeaderClass {
						h.Header.Value = "any"
					}
				}
			}
		}), []Code{WrongClass}},
		"default that leads out": {rds(edgeName, func(c *route.RouteConfiguration) {
			for _, v := range c.VirtualHosts {
				v.Matcher.OnNoMatch = &match.Matcher_OnMatch{OnMatch: &match.Matcher_OnMatch_Action{Action: action(classAny)}}
			}
		}), []Code{LocationUnknown, OutsideBoundary, WrongClass, WrongService}},
		"route list instead of a tree": {rds(edgeName, func(c *route.RouteConfiguration) {
			c.VirtualHosts[0].Matcher = nil
			c.VirtualHosts[0].Routes = []*route.Route{{Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: "/"}},
				Action: &route.Route_Route{Route: &route.RouteAction{ClusterSpecifier: &route.RouteAction_Cluster{Cluster: classAny}}}}}
		}), []Code{LocationUnknown, OutsideBoundary, WrongClass, WrongService}},
		"virtual hosts from elsewhere": {rds(edgeName, func(c *route.RouteConfiguration) {
			c.Vhds = &route.Vhds{ConfigSource: &core.ConfigSource{ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}}}}
		}), []Code{NotAnalysable}},
		"routes missing": {without(frankfurt, xds.TypeRoute, edgeName), []Code{Dangling}},

		"strip missing": {http(func(m *hcm.HttpConnectionManager) { m.HttpFilters = m.HttpFilters[1:] }), []Code{ForgedHeaders}},
		"strip after geoip": {http(func(m *hcm.HttpConnectionManager) {
			m.HttpFilters[0], m.HttpFilters[1] = m.HttpFilters[1], m.HttpFilters[0]
		}), []Code{ForgedHeaders}},
		"Lua": {http(func(m *hcm.HttpConnectionManager) {
			m.HttpFilters = append([]*hcm.HttpFilter{m.HttpFilters[0], {Name: "lua", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&lua.Lua{})}}}, m.HttpFilters[1:]...)
		}), []Code{NotAnalysable}},
		"filter switched off":        {http(func(m *hcm.HttpConnectionManager) { m.HttpFilters[0].Disabled = true }), []Code{NotAnalysable}},
		"country in the wrong group": {tables("meridian.country", func(m *match.Matcher) { exact(m)["DE"] = other(m) }), []Code{OutsideBoundary, WrongClass}},
		"country missing":            {tables("meridian.country", func(m *match.Matcher) { delete(exact(m), "FR") }), []Code{OutsideBoundary, WrongClass}},
		"unknown location let in":    {tables("meridian.country", func(m *match.Matcher) { m.OnNoMatch = other(m) }), []Code{LocationUnknown}},
		"tenant in the wrong group":  {tables("meridian.tenant", func(m *match.Matcher) { exact(m)["acme"] = m.OnNoMatch }), []Code{OutsideBoundary, WrongClass}},
		"label in the wrong group":   {tables("meridian.label", func(m *match.Matcher) { exact(m)["export-controlled"] = m.OnNoMatch }), []Code{OutsideBoundary, WrongClass}},
		"table that runs another filter": {tables("meridian.country", func(m *match.Matcher) {
			exact(m)["DE"] = &match.Matcher_OnMatch{OnMatch: &match.Matcher_OnMatch_Action{Action: &xdscore.TypedExtensionConfig{Name: "x", TypedConfig: pack(&composite.ExecuteFilterAction{
				TypedConfig: &core.TypedExtensionConfig{Name: "x", TypedConfig: pack(&lua.Lua{})}})}}}
		}), []Code{NotAnalysable}},

		"hop that leads elsewhere": {rds("to/fra-1", func(c *route.RouteConfiguration) {
			everyRoute(c.VirtualHosts[0].Matcher, func(r *route.Route) {
				r.GetRoute().ClusterSpecifier = &route.RouteAction_Cluster{Cluster: "gateway/iad-1"}
			})
		}), []Code{OutsideBoundary}},
		"filter in a hop": {lds("to/fra-1", func(l *listener.Listener) {
			manager(t, l, func(m *hcm.HttpConnectionManager) {
				m.HttpFilters = append([]*hcm.HttpFilter{{Name: "lua", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&lua.Lua{})}}}, m.HttpFilters...)
			})
		}), []Code{NotAnalysable}},
		"TCP to a cluster that is no class": {lds(tcpEdge, func(l *listener.Listener) { tcpTo(l, poolHere) }), []Code{NotAnalysable}},
		"TCP server abroad":                 {eds("class/vectors/vectors-stay", func(a assignment) { a.Endpoints = append(a.Endpoints, standby(1, "virginia", lb("127.20.1.4", 6333))) }), []Code{OutsideBoundary}},
		"two listeners on one address":      {lds(tcpEdge, func(l *listener.Listener) { l.Address = socketTo("127.0.0.1", 8080) }), []Code{AddressInUse}},
		"network filter that is not known": {lds(tcpEdge, func(l *listener.Listener) {
			l.FilterChains[0].Filters[0].ConfigType = &listener.Filter_TypedConfig{TypedConfig: pack(&lua.Lua{})}
		}), []Code{NotAnalysable}},

		"east-west without client certificates": {lds("east-west", func(l *listener.Listener) {
			socketTLS(l, func(c *tls.DownstreamTlsContext) { c.RequireClientCertificate = nil })
		}), []Code{PeerNotAuthenticated}},
		"east-west in plaintext": {lds("east-west", func(l *listener.Listener) { l.FilterChains[0].TransportSocket = nil }), []Code{PeerNotAuthenticated}},
		"east-west that trusts a stranger": {lds("east-west", func(l *listener.Listener) {
			socketTLS(l, func(c *tls.DownstreamTlsContext) {
				v := c.CommonTlsContext.GetValidationContext().CustomValidatorConfig
				s := &tls.SPIFFECertValidatorConfig{}
				if v.TypedConfig.UnmarshalTo(s) == nil {
					s.TrustDomains = append(s.TrustDomains, &tls.SPIFFECertValidatorConfig_TrustDomain{Name: "stranger", TrustBundle: s.TrustDomains[0].TrustBundle})
					v.TypedConfig = pack(s)
				}
			})
		}), []Code{PeerNotAuthenticated}},
		"east-west that leads on to another cluster": {rds("east-west", func(c *route.RouteConfiguration) {
			everyRoute(c.VirtualHosts[0].Matcher, func(r *route.Route) {
				r.GetRoute().ClusterSpecifier = &route.RouteAction_Cluster{Cluster: "gateway/iad-1"}
			})
		}), []Code{CrossesTwice}},
		"east-west that serves a class from abroad": {change(t, virginia, xds.TypeRoute, "east-west", func(c *route.RouteConfiguration) {
			for _, o := range exact(c.VirtualHosts[0].Matcher) {
				served := exact(o.GetMatcher())
				for _, to := range served {
					served["eu-people"] = to
				}
			}
		}), []Code{OutsideBoundary}},
		"east-west TCP chain of another class": {lds("east-west", func(l *listener.Listener) {
			for _, chain := range l.FilterChains {
				if chain.Name == xds.TCPServerName("vectors", "vectors-stay") {
					chain.FilterChainMatch.ServerNames = []string{xds.TCPServerName("vectors", "any")}
				}
			}
		}), []Code{WrongClass}},
		"secret missing":                {without(frankfurt, xds.TypeSecret, "identity"), []Code{Dangling}},
		"bytes that do not decode":      {with(frankfurt, &xds.Resource{Type: xds.TypeCluster, Name: classEU, Bytes: []byte{0xff}, Version: "x"}), []Code{Invalid}},
		"resource under another's name": {with(frankfurt, renamed(frankfurt.Resource(xds.TypeEndpoint, classAny), classEU)), []Code{Invalid}},
	} {
		t.Run(name, func(t *testing.T) {
			violations := Check(w, c.snapshot)
			if got := codesOf(violations); !slices.Equal(got, c.want) {
				t.Errorf("want %s, got %s: %v", c.want, got, violations)
			}
		})
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
	return &xds.Resource{Type: r.Type, Name: name, Bytes: r.Bytes, Version: r.Version}
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
