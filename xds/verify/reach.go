package verify

import (
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	aggregate "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	codec "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/upstream_codec/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	upstream "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"

	"github.com/meridian-mesh/meridian/policies"
)

// reachKey is an Envoy cluster entered with a request for a service.
type reachKey struct {
	cluster string
	service policies.ServiceName
}

// reach is every place that a request for a service can get to through a cluster: at every priority, whatever is healthy.
func (k *walk) reach(name string, service policies.ServiceName) []place {
	key := reachKey{name, service}
	if places, done := k.reached[key]; done {
		return places // while under way it is empty: a cycle adds nothing
	}
	k.reached[key] = nil
	c, ok := k.config.clusters[name]
	if !ok {
		k.report(Violation{Code: Dangling, Resource: name, Cluster: name, Detail: "a route leads to a cluster that is not there"})
		return nil
	}
	places := k.through(name, c, service)
	k.reached[key] = places
	return places
}

func (k *walk) through(name string, c *cluster.Cluster, service policies.ServiceName) []place {
	k.upstreamFilters(name, c)
	if custom := c.GetClusterType(); custom != nil {
		return k.throughCustom(name, custom, service)
	}
	switch c.GetType() {
	case cluster.Cluster_EDS:
		return k.assignment(name, k.edsOf(name, c), service)
	case cluster.Cluster_STATIC:
		return k.assignment(name, c.GetLoadAssignment(), service)
	}
	k.notAnalysable(name, "a cluster of type %s: its addresses are not certain", c.GetType())
	return nil
}

// throughCustom follows an aggregate to all of its clusters; another kind can't be followed.
func (k *walk) throughCustom(name string, custom *cluster.Cluster_CustomClusterType, service policies.ServiceName) []place {
	var a aggregate.ClusterConfig
	if !unpackAny(custom.GetTypedConfig(), &a) {
		k.notAnalysable(name, "a cluster of type %s", custom.GetName())
		return nil
	}
	var places []place
	for _, member := range a.GetClusters() {
		places = append(places, k.reach(member, service)...)
	}
	return places
}

// upstreamFilters may change headers, and mirrors of the cluster get requests as well.
func (k *walk) upstreamFilters(name string, c *cluster.Cluster) {
	for key, options := range c.GetTypedExtensionProtocolOptions() {
		var http upstream.HttpProtocolOptions
		if !unpackAny(options, &http) {
			k.notAnalysable(name, "protocol options %s", key)
			continue
		}
		for _, f := range http.GetHttpFilters() {
			if !stripsForged(filterMessage(f.GetTypedConfig())) && !unpackAny(f.GetTypedConfig(), &codec.UpstreamCodec{}) {
				k.notAnalysable(name, "upstream filter %s", f.GetName())
			}
		}
		if len(http.GetRequestMirrorPolicies()) > 0 {
			k.notAnalysable(name, "requests are mirrored by the cluster")
		}
	}
	for _, f := range c.GetFilters() {
		k.notAnalysable(name, "upstream network filter %s", f.GetName())
	}
}

func (k *walk) edsOf(name string, c *cluster.Cluster) *endpoint.ClusterLoadAssignment {
	source := c.GetEdsClusterConfig()
	if source.GetEdsConfig().GetAds() == nil {
		k.notAnalysable(name, "endpoints that don't come over ADS")
	}
	eds := source.GetServiceName()
	if eds == "" {
		eds = name
	}
	a, ok := k.config.endpoints[eds]
	if !ok {
		k.report(Violation{Code: Dangling, Resource: name, Cluster: name, Detail: "the cluster's endpoints are not there"})
	}
	return a
}

// assignment follows every endpoint of every priority.
func (k *walk) assignment(name string, a *endpoint.ClusterLoadAssignment, service policies.ServiceName) []place {
	var places []place
	for _, l := range a.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			if e.GetEndpointName() != "" {
				k.notAnalysable(name, "an endpoint by name")
				continue
			}
			addresses := []*core.Address{e.GetEndpoint().GetAddress()}
			for _, more := range e.GetEndpoint().GetAdditionalAddresses() {
				addresses = append(addresses, more.GetAddress())
			}
			if hc := e.GetEndpoint().GetHealthCheckConfig().GetAddress(); hc != nil {
				addresses = append(addresses, hc)
			}
			for _, address := range addresses {
				places = append(places, k.endpoint(name, address, service)...)
			}
		}
	}
	return places
}

// endpoint is where an address is, or where the inner hop behind it leads.
func (k *walk) endpoint(name string, address *core.Address, service policies.ServiceName) []place {
	if internal := address.GetEnvoyInternalAddress(); internal != nil {
		return k.hop(name, internal.GetServerListenerName(), service)
	}
	at, ok := socket(address)
	if !ok {
		k.notAnalysable(name, "an address that is not an IP and a port")
		return nil
	}
	p, ok := k.locate(at, service)
	if !ok {
		k.report(Violation{Code: UnknownAddress, Resource: name, Cluster: name, Address: at})
		return nil
	}
	p.via = name
	if p.gateway && service == "" {
		return k.anyServiceAt(p)
	}
	return []place{p}
}

// anyServiceAt is a gateway that is entered for a service that is not certain: for any that has a pool behind it.
func (k *walk) anyServiceAt(gateway place) []place {
	var places []place
	for _, pool := range k.world.Pools() {
		if pool.Key.Cluster == gateway.cluster {
			gateway.service = pool.Key.Service
			places = append(places, gateway)
		}
	}
	return places
}

// hop follows a request for a service through an internal listener.
func (k *walk) hop(name, listener string, service policies.ServiceName) []place {
	l, ok := k.config.listeners[listener]
	if !ok || l.GetInternalListener() == nil {
		k.report(Violation{Code: Dangling, Resource: name, Cluster: name, Detail: "internal listener " + listener + " is not there"})
		return nil
	}
	h := headers{known: map[string]string{}, free: map[string]bool{":path": true, ":authority": true, headerClass: true}}
	if service != "" {
		h.known[headerService] = string(service)
	} else {
		h.free[headerService] = true
	}
	var places []place
	for _, m := range k.managers(listener) {
		routes := k.routesOf(listener, m)
		for _, v := range routes.GetVirtualHosts() {
			for _, r := range k.routes(routes.GetName(), v, h) {
				for _, leaf := range k.leafs(routes.GetName(), v, r) {
					places = append(places, k.reach(leaf.cluster, service)...)
				}
			}
		}
	}
	return places
}

// managers are the HTTP connection managers of a listener between gateways, which must have nothing but a router.
func (k *walk) managers(listener string) []*hcm.HttpConnectionManager {
	l := k.config.listeners[listener]
	var all []*hcm.HttpConnectionManager
	for _, chain := range l.GetFilterChains() {
		for _, f := range chain.GetFilters() {
			m := &hcm.HttpConnectionManager{}
			if !unpackAny(f.GetTypedConfig(), m) {
				continue
			}
			if len(m.GetHttpFilters()) != 1 || m.GetHttpFilters()[0].GetName() != "envoy.filters.http.router" {
				k.notAnalysable(listener, "filters other than the router between gateways")
			}
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		k.notAnalysable(listener, "no HTTP connection manager")
	}
	return all
}
