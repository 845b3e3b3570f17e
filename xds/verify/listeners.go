package verify

import (
	"maps"
	"slices"

	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/meridian-mesh/meridian/xds"
)

// listeners walks every listener that accepts connections. Internal listeners are followed where something leads to them.
func (k *walk) listeners() {
	for _, name := range slices.Sorted(maps.Keys(k.config.listeners)) {
		l := k.config.listeners[name]
		switch {
		case l.GetInternalListener() != nil:
		case name == xds.EastWestListener:
			k.eastWest(l)
		default:
			k.edge(name, l)
		}
	}
}

// edge walks a listener that accepts clients.
func (k *walk) edge(name string, l *listener.Listener) {
	chains := l.GetFilterChains()
	if l.GetDefaultFilterChain() != nil {
		chains = append(slices.Clone(chains), l.GetDefaultFilterChain())
	}
	for _, chain := range chains {
		for _, f := range chain.GetFilters() {
			var http hcm.HttpConnectionManager
			var tcp tcpproxy.TcpProxy
			switch {
			case unpackAny(f.GetTypedConfig(), &http):
				k.http(name, &http)
			case unpackAny(f.GetTypedConfig(), &tcp):
				k.tcp(name, &tcp)
			default:
				k.notAnalysable(name, "network filter %s (%s)", f.GetName(), typeOf(f.GetTypedConfig().GetTypeUrl()))
			}
		}
	}
}

// tcp checks what a TCP listener's connections reach. They carry nothing that a rule could match but their service.
func (k *walk) tcp(name string, p *tcpproxy.TcpProxy) {
	for _, c := range tcpClusters(p) {
		service, class, ok := xds.ParseClassCluster(c)
		if !ok {
			k.notAnalysable(name, "TCP to cluster %s, which is not of a class", c)
			continue
		}
		k.judge(leafOf{resource: name, route: "tcp", cluster: c, service: service, class: class}, subject{})
	}
	if len(tcpClusters(p)) == 0 || p.GetOnDemand() != nil || p.GetTunnelingConfig() != nil {
		k.notAnalysable(name, "a TCP proxy whose clusters are not certain")
	}
}

func tcpClusters(p *tcpproxy.TcpProxy) []string {
	var names []string
	if c := p.GetCluster(); c != "" {
		names = append(names, c)
	}
	for _, w := range p.GetWeightedClusters().GetClusters() {
		names = append(names, w.GetName())
	}
	return names
}

// routesOf are a connection manager's routes, its own or over RDS.
func (k *walk) routesOf(name string, m *hcm.HttpConnectionManager) *route.RouteConfiguration {
	if r := m.GetRouteConfig(); r != nil {
		return r
	}
	rds := m.GetRds().GetRouteConfigName()
	if rds == "" {
		k.notAnalysable(name, "routes that come neither with the listener nor over RDS")
		return nil
	}
	r, ok := k.config.routes[rds]
	if !ok {
		k.report(Violation{Code: Dangling, Resource: name, Detail: "route configuration " + rds + " is not there"})
		return nil
	}
	if r.GetVhds() != nil || len(r.GetClusterSpecifierPlugins()) > 0 || len(r.GetTypedPerFilterConfig()) > 0 {
		k.notAnalysable(rds, "virtual hosts, clusters or filters that are configured elsewhere")
	}
	return r
}

// http walks a client-facing connection manager, for every kind of request that can be told apart.
func (k *walk) http(name string, m *hcm.HttpConnectionManager) {
	c := k.readChain(name, m)
	routes := k.routesOf(name, m)
	if routes == nil {
		return
	}
	seen := map[string]map[string]bool{}
	c.values(seen)
	for _, v := range routes.GetVirtualHosts() {
		if v.GetMatcher() != nil {
			valuesIn(v.GetMatcher(), seen)
		}
	}
	for _, s := range k.rules.subjects(seen, k.gateway) {
		h, err := c.run(k, s)
		if err != nil {
			k.follow(name, err)
			return
		}
		for _, v := range routes.GetVirtualHosts() {
			k.virtualHost(routes.GetName(), v, h, s)
		}
	}
}

// virtualHost judges every route that a request with such headers can come to.
func (k *walk) virtualHost(resource string, v *route.VirtualHost, h headers, s subject) {
	for _, r := range k.routes(resource, v, h) {
		for _, leaf := range k.leafs(resource, v, r) {
			k.judge(leaf, s)
		}
	}
}

// routes are those that a request can come to: all of a list, or the leaves of a tree.
func (k *walk) routes(resource string, v *route.VirtualHost, h headers) []*route.Route {
	if len(v.GetTypedPerFilterConfig()) > 0 || len(v.GetRequestMirrorPolicies()) > 0 {
		k.notAnalysable(resource, "virtual host %s has filters or mirrors of its own", v.GetName())
	}
	if v.GetMatcher() == nil {
		return v.GetRoutes()
	}
	var routes []*route.Route
	err := leaves(v.GetMatcher(), h, func(a *anypb.Any) error {
		if a == nil {
			return nil // Envoy answers 404 itself
		}
		r, err := k.routeOf(a)
		routes = append(routes, r)
		return err
	})
	k.follow(resource, err)
	return routes
}
