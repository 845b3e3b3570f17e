package verify

import (
	"maps"
	"slices"
	"strings"

	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// eastWest walks the listener for other clusters' gateways: peers are authenticated, everything ends in this cluster, and
// only for classes that permit it.
func (k *walk) eastWest(l *listener.Listener) {
	for _, chain := range chainsOf(l) {
		k.downstreamPeer(chain)
	}
	k.proxies(xds.EastWestListener, l, func(_ *listener.FilterChain, m *hcm.HttpConnectionManager) { k.eastWestHTTP(m) }, k.eastWestTCP)
}

// eastWestHTTP walks what peers reach, for every service and class that is told apart, for one that is not, and without.
func (k *walk) eastWestHTTP(m *hcm.HttpConnectionManager) {
	k.onlyRouter(xds.EastWestListener, m)
	routes := k.routesOf(xds.EastWestListener, m)
	if routes == nil {
		return
	}
	_, seen := routes.inputs()
	for _, service := range withUnnamed(seen[headerService], unnamed) {
		for _, class := range withUnnamed(seen[headerClass], unnamed) {
			h := headers{listed: map[string]value{headerService: valueOf(service), headerClass: valueOf(class)}}
			for _, t := range k.targets(routes, h) {
				k.servedHere(&target{resource: t.resource, route: t.route, cluster: t.cluster, service: policies.ServiceName(service), class: world.ClassID(class)})
			}
		}
	}
}

// eastWestTCP walks what peers reach that ask for a TCP service by server name.
func (k *walk) eastWestTCP(chain *listener.FilterChain, p *tcpproxy.TcpProxy) {
	names := chain.GetFilterChainMatch().GetServerNames()
	if len(names) != 1 {
		k.notAnalysable(xds.EastWestListener, "TCP chain %s has not exactly one server name", chain.GetName())
		return
	}
	service, class := parseServerName(names[0])
	for _, c := range tcpClusters(p) {
		k.servedHere(&target{resource: xds.EastWestListener, route: names[0], cluster: c, service: service, class: class})
	}
}

// parseServerName reads what xds.TCPServerName writes.
func parseServerName(name string) (policies.ServiceName, world.ClassID) {
	labels := strings.Split(strings.TrimSuffix(name, ".tcp.meridian"), ".")
	last := len(labels) - 1
	return policies.ServiceName(labels[last]), world.ClassID(strings.Join(labels[:last], "+"))
}

// servedHere checks that what a peer reaches for a service and class is in this cluster, is that service, and is inside
// the class's rules, which must be all that bind every request for the service.
func (k *walk) servedHere(t *target) {
	v := Violation{Resource: t.resource, Route: t.route, Cluster: t.cluster}
	k.classHolds(v, t)
	for _, s := range k.reach(entry{cluster: t.cluster, service: t.service}) {
		if s.gateway || s.cluster != k.here {
			v.Code, v.Detail = CrossesTwice, "it is in cluster "+string(s.cluster)
			k.report(v.at(s))
			continue
		}
		if s.service != t.service {
			v.Code, v.Detail = WrongService, "a peer that asks for "+string(t.service)+" gets "+string(s.service)
			k.report(v.at(s))
		}
		for _, name := range t.class.Rules() {
			if r := k.rules.find(name); r != nil && !r.permits(s.region) {
				v.Code, v.Policies, v.Detail = OutsideBoundary, []policies.ResidencyName{name}, "class "+string(t.class)+" from another gateway"
				k.report(v.at(s))
			}
		}
	}
}

// classHolds checks that a peer's class is one that the rules can make for the service.
func (k *walk) classHolds(v Violation, t *target) {
	v.Code = WrongClass
	if t.service == "" || t.service == unnamed || t.class == "" || t.class == unnamed {
		v.Detail = "a peer gets there without naming a service and a class that is known"
		k.report(v)
		return
	}
	rules := map[policies.ResidencyName]bool{}
	for _, name := range t.class.Rules() {
		rules[name] = true
		if r := k.rules.find(name); r == nil || !r.concerns(t.service) {
			v.Detail, v.Policies = "class "+string(t.class)+" is of a rule that does not concern service "+string(t.service), []policies.ResidencyName{name}
			k.report(v)
		}
	}
	bound, _ := k.rules.binding(subject{country: unnamedCountry})
	always := concerning(bound, t.service)
	if missing := slices.DeleteFunc(always, func(n policies.ResidencyName) bool { return rules[n] }); len(missing) > 0 {
		v.Detail, v.Policies = "class "+string(t.class)+" leaves out rules that bind every request for service "+string(t.service), missing
		k.report(v)
	}
}

// sortedKeys are a map's keys, sorted: what is found first must not depend on the map's order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
