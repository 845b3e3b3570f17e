package verify

import (
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	lua "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/meridian-mesh/meridian/xds"
)

func innerFaults(m mesh) map[string]faulty {
	return map[string]faulty{
		"hop that leads elsewhere": {m.rds("to/fra-1", func(c *route.RouteConfiguration) {
			everyRoute(c.VirtualHosts[0].Matcher, func(r *route.Route) {
				r.GetRoute().ClusterSpecifier = &route.RouteAction_Cluster{Cluster: "gateway/iad-1"}
			})
		}), []Code{OutsideBoundary}},
		"filter in a hop": {m.lds("to/fra-1", func(l *listener.Listener) {
			manager(m.t, l, func(h *hcm.HttpConnectionManager) {
				h.HttpFilters = append([]*hcm.HttpFilter{{Name: "lua", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&lua.Lua{})}}}, h.HttpFilters...)
			})
		}), []Code{NotAnalysable}},
		"TCP to a cluster that is no class": {m.lds(tcpEdge, func(l *listener.Listener) { tcpTo(l, poolHere) }), []Code{NotAnalysable}},
		"TCP server abroad":                 {m.eds("class/vectors/vectors-stay", func(a assignment) { a.Endpoints = append(a.Endpoints, standby(1, "virginia", lb("127.20.1.4", 6333))) }), []Code{OutsideBoundary}},
		"two listeners on one address":      {m.lds(tcpEdge, func(l *listener.Listener) { l.Address = socketTo("127.0.0.1", 8080) }), []Code{AddressInUse}},
		"network filter that is not known": {m.lds(tcpEdge, func(l *listener.Listener) {
			l.FilterChains[0].Filters[0].ConfigType = &listener.Filter_TypedConfig{TypedConfig: pack(&lua.Lua{})}
		}), []Code{NotAnalysable}},

		"hop that leads back": {m.rds("to/fra-1", func(c *route.RouteConfiguration) {
			everyRoute(c.VirtualHosts[0].Matcher, func(r *route.Route) {
				r.GetRoute().ClusterSpecifier = &route.RouteAction_Cluster{Cluster: classEU}
			})
		}), []Code{Loop}},
		"hop that changes the class": {m.rds("to/fra-1", func(c *route.RouteConfiguration) {
			everyRoute(c.VirtualHosts[0].Matcher, func(r *route.Route) { r.RequestHeadersToAdd = says("llama", "any") })
		}), []Code{NotAnalysable}},
		"hop with another way out": {m.lds("to/fra-1", func(l *listener.Listener) {
			l.DefaultFilterChain = &listener.FilterChain{Filters: []*listener.Filter{toTCP("gateway/iad-1")}}
		}), []Code{NotAnalysable}},
		"hop to the server of another service": {m.rds("to/fra-1", func(c *route.RouteConfiguration) {
			everyRoute(c.VirtualHosts[0].Matcher, func(r *route.Route) {
				if r.Name == "llama" {
					r.GetRoute().ClusterSpecifier = &route.RouteAction_Cluster{Cluster: "pool/features/fra-1"}
				}
			})
		}), []Code{WrongService}},
		"listener whose routes are missing": {without(m.frankfurt, xds.TypeRoute, "to/iad-1"), []Code{Dangling}},
		"TCP to another service":            {m.lds(tcpEdge, func(l *listener.Listener) { tcpTo(l, "class/queue/any") }), []Code{WrongService}},
		"TCP that divides connections": {m.lds(tcpEdge, func(l *listener.Listener) {
			l.FilterChains[0].Filters[0].ConfigType = &listener.Filter_TypedConfig{TypedConfig: pack(&tcpproxy.TcpProxy{StatPrefix: "x", ClusterSpecifier: &tcpproxy.TcpProxy_WeightedClusters{
				WeightedClusters: &tcpproxy.TcpProxy_WeightedCluster{Clusters: []*tcpproxy.TcpProxy_WeightedCluster_ClusterWeight{
					{Name: "class/vectors/vectors-stay", Weight: 9}, {Name: "gateway/iad-1", Weight: 1}}}}})}
		}), []Code{NotAnalysable}},
		"TCP in a tunnel": {m.lds(tcpEdge, func(l *listener.Listener) {
			l.FilterChains[0].Filters[0].ConfigType = &listener.Filter_TypedConfig{TypedConfig: pack(&tcpproxy.TcpProxy{StatPrefix: "x",
				ClusterSpecifier: &tcpproxy.TcpProxy_Cluster{Cluster: "class/vectors/vectors-stay"}, TunnelingConfig: &tcpproxy.TcpProxy_TunnelingConfig{Hostname: "x"}})}
		}), []Code{NotAnalysable}},
		"original destination used": {m.lds(tcpEdge, func(l *listener.Listener) { l.UseOriginalDst = wrapperspb.Bool(true) }), []Code{NotAnalysable}},
	}
}

func eastWestFaults(m mesh) map[string]faulty {
	return map[string]faulty{
		"east-west without client certificates": {m.lds("east-west", func(l *listener.Listener) {
			socketTLS(l, func(c *tls.DownstreamTlsContext) { c.RequireClientCertificate = nil })
		}), []Code{PeerNotAuthenticated}},
		"east-west in plaintext": {m.lds("east-west", func(l *listener.Listener) { l.FilterChains[0].TransportSocket = nil }), []Code{PeerNotAuthenticated}},
		"east-west that trusts a stranger": {m.lds("east-west", func(l *listener.Listener) {
			socketTLS(l, func(c *tls.DownstreamTlsContext) { trust(c.CommonTlsContext, "stranger") })
		}), []Code{PeerNotAuthenticated}},
		"east-west that leads on to another cluster": {m.rds("east-west", func(c *route.RouteConfiguration) {
			everyRoute(c.VirtualHosts[0].Matcher, func(r *route.Route) {
				r.GetRoute().ClusterSpecifier = &route.RouteAction_Cluster{Cluster: "gateway/iad-1"}
			})
		}), []Code{CrossesTwice}},
		"east-west that serves a class from abroad": {change(m.t, m.virginia, xds.TypeRoute, "east-west", func(c *route.RouteConfiguration) {
			for _, o := range exact(c.VirtualHosts[0].Matcher) {
				served := exact(o.GetMatcher())
				for _, to := range served {
					served["eu-people"] = to
				}
			}
		}), []Code{OutsideBoundary}},
		"east-west TCP chain of another class": {m.lds("east-west", func(l *listener.Listener) {
			for _, chain := range l.FilterChains {
				if chain.Name == xds.TCPServerName("vectors", "vectors-stay") {
					chain.FilterChainMatch.ServerNames = []string{xds.TCPServerName("vectors", "any")}
				}
			}
		}), []Code{WrongClass}},
		"secret missing":                {without(m.frankfurt, xds.TypeSecret, "identity"), []Code{Dangling}},
		"bytes that do not decode":      {with(m.frankfurt, xds.Serialised(xds.TypeCluster, classEU, "x", []byte{0xff})), []Code{Invalid}},
		"resource under another's name": {with(m.frankfurt, renamed(m.frankfurt.Resource(xds.TypeEndpoint, classAny), classEU)), []Code{Invalid}},

		"east-west to another service": {m.rds("east-west", func(c *route.RouteConfiguration) {
			everyRoute(c.VirtualHosts[0].Matcher, func(r *route.Route) {
				if r.Name == "llama" {
					r.GetRoute().ClusterSpecifier = &route.RouteAction_Cluster{Cluster: "pool/features/fra-1"}
				}
			})
		}), []Code{WrongService}},
		"east-west back through the choice of clusters": {m.rds("east-west", func(c *route.RouteConfiguration) {
			everyRoute(c.VirtualHosts[0].Matcher, func(r *route.Route) {
				r.GetRoute().ClusterSpecifier = &route.RouteAction_Cluster{Cluster: classAny}
			})
		}), []Code{CrossesTwice}},
		"east-west whatever the class": {m.rds("east-west", func(c *route.RouteConfiguration) {
			for _, o := range exact(c.VirtualHosts[0].Matcher) {
				for _, to := range exact(o.GetMatcher()) {
					o.GetMatcher().OnNoMatch = to
				}
			}
		}), []Code{WrongClass}},
		"east-west default chain": {m.lds("east-west", func(l *listener.Listener) {
			l.DefaultFilterChain = &listener.FilterChain{Filters: []*listener.Filter{toTCP(poolHere)}}
		}), []Code{NotAnalysable, PeerNotAuthenticated}},
		"east-west TCP chain to another cluster": {m.lds("east-west", func(l *listener.Listener) {
			for _, chain := range l.FilterChains {
				if chain.Name == xds.TCPServerName("queue", "any") {
					chain.Filters = []*listener.Filter{toTCP("gateway/iad-1")}
				}
			}
		}), []Code{CrossesTwice}},
		"east-west TCP chain with two names": {m.lds("east-west", func(l *listener.Listener) {
			for _, chain := range l.FilterChains {
				if chain.Name == xds.TCPServerName("queue", "any") {
					chain.FilterChainMatch.ServerNames = append(chain.FilterChainMatch.ServerNames, xds.TCPServerName("vectors", "vectors-stay"))
				}
			}
		}), []Code{NotAnalysable}},
		"private key in the configuration": {change(m.t, m.frankfurt, xds.TypeSecret, "identity", func(s *tls.Secret) {
			s.GetTlsCertificate().PrivateKey = &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: "key"}}
		}), []Code{Invalid}},
		"resource that is there twice": {xds.NewSnapshot(m.frankfurt.Viewpoint, append(slices.Collect(m.frankfurt.All()), m.frankfurt.Resource(xds.TypeCluster, classEU))), []Code{Invalid}},
		"resource of another type":     {with(m.frankfurt, xds.Serialised("type.googleapis.com/x.Y", "x", "x", nil)), []Code{Invalid}},
	}
}

// toTCP is a network filter that connects to a cluster.
func toTCP(cluster string) *listener.Filter {
	return &listener.Filter{Name: "tcp", ConfigType: &listener.Filter_TypedConfig{TypedConfig: pack(&tcpproxy.TcpProxy{StatPrefix: "x", ClusterSpecifier: &tcpproxy.TcpProxy_Cluster{Cluster: cluster}})}}
}
