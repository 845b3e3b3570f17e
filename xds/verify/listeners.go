package verify

import (
	"maps"
	"slices"

	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	headermetadata "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"

	"github.com/meridian-mesh/meridian/xds"
)

// listeners walks every listener that accepts connections. Internal listeners are followed where something leads to them.
func (k *walk) listeners() {
	for _, name := range slices.Sorted(maps.Keys(k.config.listeners)) {
		l := k.config.listeners[name]
		switch {
		case l.GetApiListener() != nil || k.grpc:
			k.proxyless(name, l)
		case l.GetInternalListener() != nil:
		case name == xds.EastWestListener:
			k.eastWest(l)
		default:
			k.edge(name, l)
		}
	}
}

// chainsOf are a listener's filter chains, with the one for whatever no other accepts.
func chainsOf(l *listener.Listener) []*listener.FilterChain {
	if l.GetDefaultFilterChain() == nil {
		return l.GetFilterChains()
	}
	return append(slices.Clone(l.GetFilterChains()), l.GetDefaultFilterChain())
}

// proxies gives the proxy at the end of each filter chain to what handles its kind. Nothing else may be in a chain.
func (k *walk) proxies(name string, l *listener.Listener, http func(*listener.FilterChain, *hcm.HttpConnectionManager), tcp func(*listener.FilterChain, *tcpproxy.TcpProxy)) {
	for _, chain := range chainsOf(l) {
		for _, f := range chain.GetFilters() {
			var m hcm.HttpConnectionManager
			var p tcpproxy.TcpProxy
			switch {
			case http != nil && unpackAny(f.GetTypedConfig(), &m):
				http(chain, &m)
			case tcp != nil && unpackAny(f.GetTypedConfig(), &p):
				tcp(chain, &p)
			default:
				k.notAnalysable(name, "network filter %s (%s)", f.GetName(), typeOf(f.GetTypedConfig().GetTypeUrl()))
			}
		}
	}
}

// edge walks a listener that accepts clients.
func (k *walk) edge(name string, l *listener.Listener) {
	k.proxies(name, l, func(_ *listener.FilterChain, m *hcm.HttpConnectionManager) { k.edgeHTTP(name, m) },
		func(_ *listener.FilterChain, p *tcpproxy.TcpProxy) { k.edgeTCP(name, l, p) })
}

// edgeHTTP judges all that a client's request can come to, for every kind of request that can be told apart.
func (k *walk) edgeHTTP(name string, m *hcm.HttpConnectionManager) {
	c, ok := k.readChain(name, m)
	if !ok {
		return
	}
	key := admissionKey{k.whom, k.gateway.Metadata.Name, name, k.config.version(xds.TypeListener, name), k.config.version(xds.TypeRoute, m.GetRds().GetRouteConfigName())}
	admitted, ok := k.admitted[key]
	if !ok {
		before := len(k.violations)
		admitted = k.admit(name, c, k.routesOf(name, m))
		if len(k.violations) == before {
			k.admitted[key] = admitted
		}
	}
	for _, a := range admitted {
		k.judge(a)
	}
}

// edgeTCP judges what a TCP listener's connections reach. They carry nothing that a rule could match but their service.
func (k *walk) edgeTCP(name string, l *listener.Listener, p *tcpproxy.TcpProxy) {
	someone := k.kindOf(subject{})
	for _, c := range tcpClusters(p) {
		service, class, ok := xds.ParseClassCluster(c)
		if !ok {
			k.notAnalysable(name, "TCP to cluster %s, which is not of a class", c)
			continue
		}
		if s, ok := k.set.Service(service); !ok || uint32(s.Spec.Port) != l.GetAddress().GetSocketAddress().GetPortValue() {
			k.report(Violation{Code: WrongService, Resource: name, Cluster: c, Detail: "the port is not of service " + string(service)})
		}
		k.judge(admission{someone, &target{resource: name, route: "tcp", cluster: c, service: service, class: class}})
	}
}

func tcpClusters(p *tcpproxy.TcpProxy) []string {
	if p.GetWeightedClusters() == nil {
		return []string{p.GetCluster()}
	}
	var names []string
	for _, w := range p.GetWeightedClusters().GetClusters() {
		names = append(names, w.GetName())
	}
	return names
}

// routesOf are a connection manager's routes, its own or over RDS; nil where they can't be read.
func (k *walk) routesOf(name string, m *hcm.HttpConnectionManager) *routing {
	c := m.GetRouteConfig()
	if c == nil {
		var ok bool
		if c, ok = k.config.routeConfiguration(m.GetRds().GetRouteConfigName()); !ok {
			return nil // said by the structure
		}
	}
	if r, ok := k.routings[c]; ok {
		return r
	}
	r, err := readRouting(c)
	k.follow(name, err)
	k.routings[c] = r
	return r
}

// targets are all that a request with such headers can be sent to; what can't be followed is reported.
func (k *walk) targets(r *routing, h headers) []*target {
	if r == nil {
		return nil
	}
	all, err := r.targets(h)
	k.follow(r.name, err)
	return all
}

// innerRoutes are the routes of a listener between gateways, which may have nothing but a router before them.
func (k *walk) innerRoutes(name string, l *listener.Listener) []*routing {
	if known, ok := k.inner[name]; ok {
		return known
	}
	var all []*routing
	k.proxies(name, l, func(_ *listener.FilterChain, m *hcm.HttpConnectionManager) {
		k.onlyRouter(name, m)
		all = append(all, k.routesOf(name, m))
	}, nil)
	k.inner[name] = all
	return all
}

// onlyRouter checks that nothing but a router handles requests between gateways. What only notes a header is no matter.
func (k *walk) onlyRouter(name string, m *hcm.HttpConnectionManager) {
	for _, f := range m.GetHttpFilters() {
		if !unpackAny(f.GetTypedConfig(), &router.Router{}) && !unpackAny(f.GetTypedConfig(), &headermetadata.Config{}) {
			k.notAnalysable(name, "HTTP filter %s between gateways", f.GetName())
		}
	}
}
