package verify

import (
	"slices"
	"strings"

	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// eastWest walks the listener for other clusters' gateways: peers are authenticated, everything ends in this cluster, and
// only for classes that permit it.
func (k *walk) eastWest(l *listener.Listener) {
	for _, chain := range l.GetFilterChains() {
		k.peer(chain)
		for _, f := range chain.GetFilters() {
			var http hcm.HttpConnectionManager
			var tcp tcpproxy.TcpProxy
			switch {
			case unpackAny(f.GetTypedConfig(), &http):
				k.eastWestHTTP(&http)
			case unpackAny(f.GetTypedConfig(), &tcp):
				k.eastWestTCP(chain, &tcp)
			default:
				k.notAnalysable(xds.EastWestListener, "network filter %s", f.GetName())
			}
		}
	}
	if l.GetDefaultFilterChain() != nil {
		k.notAnalysable(xds.EastWestListener, "a default filter chain accepts what no other does")
	}
}

// peer checks that a chain requires a certificate of a SPIFFE trust domain that belongs to a cluster.
func (k *walk) peer(chain *listener.FilterChain) {
	var context tls.DownstreamTlsContext
	var spiffe tls.SPIFFECertValidatorConfig
	validation := func() *tls.CertificateValidationContext { return context.GetCommonTlsContext().GetValidationContext() }
	detail := ""
	switch {
	case !unpackAny(chain.GetTransportSocket().GetTypedConfig(), &context):
		detail = "it is not TLS"
	case !context.GetRequireClientCertificate().GetValue():
		detail = "it does not require a client certificate"
	case !unpackAny(validation().GetCustomValidatorConfig().GetTypedConfig(), &spiffe) || len(spiffe.GetTrustDomains()) == 0:
		detail = "it does not check SPIFFE identities"
	}
	for _, d := range spiffe.GetTrustDomains() {
		if !slices.ContainsFunc(k.set.Clusters, func(c policies.Cluster) bool { return c.Spec.TrustDomain == d.GetName() }) {
			detail = "trust domain " + d.GetName() + " is of no cluster"
		}
	}
	if detail != "" {
		k.report(Violation{Code: PeerNotAuthenticated, Resource: xds.EastWestListener, Route: chain.GetName(), Detail: detail})
	}
}

func (k *walk) eastWestHTTP(m *hcm.HttpConnectionManager) {
	k.managers(xds.EastWestListener)
	routes := k.routesOf(xds.EastWestListener, m)
	seen := map[string]map[string]bool{}
	for _, v := range routes.GetVirtualHosts() {
		if v.GetMatcher() == nil {
			for _, r := range v.GetRoutes() {
				k.endsHere(v, r, "", "")
			}
			continue
		}
		valuesIn(v.GetMatcher(), seen)
		for _, service := range withUnnamed(seen[headerService], "verify-unnamed") {
			for _, class := range withUnnamed(seen[headerClass], "verify-unnamed") {
				k.eastWestRequest(v, service, class)
			}
		}
	}
}

func (k *walk) eastWestRequest(v *route.VirtualHost, service, class string) {
	h := headers{known: map[string]string{}, free: map[string]bool{":path": true, ":authority": true}}
	for name, value := range map[string]string{headerService: service, headerClass: class} {
		if value != "" {
			h.known[name] = value
		}
	}
	for _, r := range k.routes(xds.EastWestRoutes, v, h) {
		k.endsHere(v, r, policies.ServiceName(service), world.ClassID(class))
	}
}

func (k *walk) endsHere(v *route.VirtualHost, r *route.Route, service policies.ServiceName, class world.ClassID) {
	for _, leaf := range k.leafs(xds.EastWestRoutes, v, r) {
		leaf.service, leaf.class = service, class
		k.servedHere(leaf)
	}
}

func (k *walk) eastWestTCP(chain *listener.FilterChain, p *tcpproxy.TcpProxy) {
	names := chain.GetFilterChainMatch().GetServerNames()
	if len(names) != 1 {
		k.notAnalysable(xds.EastWestListener, "a TCP chain without exactly one server name")
		return
	}
	labels := strings.Split(strings.TrimSuffix(names[0], ".tcp.meridian"), ".")
	service := policies.ServiceName(labels[len(labels)-1])
	class := world.ClassID(strings.Join(labels[:len(labels)-1], "+"))
	clusters := tcpClusters(p)
	if len(clusters) == 0 {
		k.notAnalysable(xds.EastWestListener, "a TCP proxy whose clusters are not certain")
	}
	for _, c := range clusters {
		k.servedHere(leafOf{resource: xds.EastWestListener, route: names[0], cluster: c, service: service, class: class})
	}
}

// servedHere checks that what a peer can reach for a service and class is in this cluster, inside the class's rules.
func (k *walk) servedHere(leaf leafOf) {
	for _, p := range k.reach(leaf.cluster, leaf.service) {
		v := Violation{Resource: leaf.resource, Route: leaf.route, Cluster: p.via, Address: p.address, Region: p.region.Metadata.Name}
		if p.gateway || p.cluster != k.here {
			v.Code, v.Detail = CrossesTwice, "it is in cluster "+string(p.cluster)
			k.report(v)
		}
		for _, name := range leaf.class.Rules() {
			rule, ok := k.set.Residency(name)
			if ok && k.rules.inside(rule, p.region) {
				continue
			}
			v.Code, v.Policies, v.Detail = OutsideBoundary, []policies.ResidencyName{name}, "class "+string(leaf.class)+" from another gateway"
			k.report(v)
		}
		if leaf.class == "" || leaf.service != p.service {
			v.Code, v.Detail = WrongClass, "a peer gets there without naming a service and a class"
			k.report(v)
		}
		if bound, _ := k.rules.binding(subject{country: "ZZ"}, p.service); leaf.class != "" {
			for _, r := range bound { // rules on the service alone bind every request
				if !slices.Contains(leaf.class.Rules(), r.Metadata.Name) {
					v.Code, v.Policies, v.Detail = WrongClass, namesOf(bound), "class "+string(leaf.class)+" leaves out a rule on the service"
					k.report(v)
				}
			}
		}
	}
}
