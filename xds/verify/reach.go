package verify

import (
	"cmp"
	"net/netip"
	"slices"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	aggregate "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"

	"github.com/meridian-mesh/meridian/policies"
)

// site is where a request can get to: the servers of one pool, or the gateways of one cluster.
type site struct {
	occupant
	// serverName is what gateways are asked for by TLS; empty for a server, and for gateways without TLS.
	serverName string
	// via is the Envoy cluster that led there.
	via string
	// address is one of those that are there.
	address netip.AddrPort
}

// entry is an Envoy cluster or an internal listener, entered with a request for a service. An empty service is any.
type entry struct {
	cluster, listener string
	service           policies.ServiceName
}

// reached is every site behind an entry.
type reached struct {
	sites []site
	done  bool
}

// add notes a site once: any one address will do to show it.
func (r *reached) add(s site) {
	if !slices.ContainsFunc(r.sites, func(o site) bool {
		return o.occupant == s.occupant && o.serverName == s.serverName && o.via == s.via
	}) {
		r.sites = append(r.sites, s)
	}
}

// reach is every site that a request for a service can get to through a cluster: at every priority, whatever is healthy.
func (k *walk) reach(e entry) []site {
	r, begun := k.reached[e]
	if begun {
		if !r.done {
			k.report(Violation{Code: Loop, Resource: cmp.Or(e.listener, e.cluster), Detail: "it leads back to itself"})
		}
		return r.sites
	}
	r = &reached{}
	k.reached[e] = r
	if e.listener != "" {
		k.throughHop(r, e)
	} else {
		k.throughCluster(r, e)
	}
	r.done = true
	return r.sites
}

func (k *walk) throughCluster(r *reached, e entry) {
	c, ok := k.config.clusters[e.cluster]
	if !ok {
		k.report(Violation{Code: Dangling, Resource: e.cluster, Cluster: e.cluster, Detail: "a route leads to a cluster that is not there"})
		return
	}
	if c.GetClusterType() != nil {
		var members aggregate.ClusterConfig
		unpackAny(c.GetClusterType().GetTypedConfig(), &members) // other kinds were refused by their shape
		for _, member := range members.GetClusters() {
			for _, s := range k.reach(entry{cluster: member, service: e.service}) {
				r.add(s)
			}
		}
		return
	}
	for _, host := range k.hosts(e.cluster, c) {
		for _, address := range addressesOf(host) {
			k.throughAddress(r, e, c, host, address)
		}
	}
}

// hosts are a cluster's endpoints, of all priorities.
func (k *walk) hosts(name string, c *cluster.Cluster) []*endpoint.LbEndpoint {
	assignment := c.GetLoadAssignment()
	if c.GetType() == cluster.Cluster_EDS {
		assignment = k.config.endpoints[cmp.Or(c.GetEdsClusterConfig().GetServiceName(), name)]
	}
	var hosts []*endpoint.LbEndpoint
	for _, l := range assignment.GetEndpoints() {
		hosts = append(hosts, l.GetLbEndpoints()...)
	}
	return hosts
}

// addressesOf are all at which a host may be dialled or checked.
func addressesOf(host *endpoint.LbEndpoint) []*core.Address {
	e := host.GetEndpoint()
	addresses := []*core.Address{e.GetAddress()}
	for _, more := range e.GetAdditionalAddresses() {
		addresses = append(addresses, more.GetAddress())
	}
	if a := e.GetHealthCheckConfig().GetAddress(); a != nil {
		addresses = append(addresses, a)
	}
	return addresses
}

func (k *walk) throughAddress(r *reached, e entry, c *cluster.Cluster, host *endpoint.LbEndpoint, address *core.Address) {
	if internal := address.GetEnvoyInternalAddress(); internal != nil {
		for _, s := range k.reach(entry{listener: internal.GetServerListenerName(), service: e.service}) {
			r.add(s)
		}
		return
	}
	at, ok := socket(address)
	if !ok {
		k.notAnalysable(e.cluster, "an address that is not an IP and a port")
		return
	}
	found := k.near(k.atlas.find(at, e.service))
	if len(found) == 0 {
		k.report(Violation{Code: UnknownAddress, Resource: e.cluster, Cluster: e.cluster, Address: at, Detail: "it is in no pool and is no cluster's gateway"})
	}
	for _, o := range found {
		s := site{occupant: o, via: e.cluster, address: at}
		if o.gateway {
			s.serverName = k.upstreamPeer(e.cluster, o.cluster, socketFor(c, host))
		}
		r.add(s)
	}
}

// near are those of some occupants of an address that can be met there from here. Clusters behind gateways have networks of their
// own, in which addresses of pods may be the same as in another's: where one of this cluster's own servers has the address, a
// server that is behind other gateways does not.
func (k *walk) near(found []occupant) []occupant {
	own := func(o occupant) bool { return !o.gateway && o.cluster == k.here }
	if len(found) < 2 || !slices.ContainsFunc(found, own) {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), func(o occupant) bool {
		c, ok := k.set.Cluster(o.cluster)
		return !own(o) && !o.gateway && ok && len(c.Spec.Gateways) > 0
	})
}

// throughHop follows a request for a service through an internal listener.
func (k *walk) throughHop(r *reached, e entry) {
	l, ok := k.config.listeners[e.listener]
	if !ok || l.GetInternalListener() == nil {
		k.report(Violation{Code: Dangling, Resource: e.listener, Detail: "an endpoint leads to an internal listener that is not there"})
		return
	}
	h := headers{listed: map[string]value{}}
	if e.service != "" {
		h.set(headerService, string(e.service))
	}
	for _, routes := range k.innerRoutes(e.listener, l) {
		for _, t := range k.targets(routes, h) {
			if t.names() {
				k.notAnalysable(e.listener, "route %s changes for which service or class a request is", t.route)
			}
			for _, s := range k.reach(entry{cluster: t.cluster, service: e.service}) {
				r.add(s)
			}
		}
	}
}
