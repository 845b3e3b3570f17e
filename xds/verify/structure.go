package verify

import (
	"cmp"
	"fmt"
	"slices"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	aggregate "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	codec "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/upstream_codec/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstream "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
)

// references checks that what resources name is there, and that no two listeners bind one address.
func (k *walk) references() {
	bound := map[string]string{}
	for _, name := range sortedKeys(k.config.listeners) {
		l := k.config.listeners[name]
		if a, ok := socket(l.GetAddress()); ok {
			if other, taken := bound[a.String()]; taken {
				k.report(Violation{Code: AddressInUse, Resource: name, Address: a, Detail: "also bound by " + other})
			}
			bound[a.String()] = name
		}
		k.listenerReferences(name, l)
	}
	for _, name := range sortedKeys(k.config.clusters) {
		k.clusterReferences(name, k.config.clusters[name])
	}
}

func (k *walk) listenerReferences(name string, l *listener.Listener) {
	for _, chain := range chainsOf(l) {
		k.secrets(name, chain.GetTransportSocket())
		for _, f := range chain.GetFilters() {
			var m hcm.HttpConnectionManager
			if unpackAny(f.GetTypedConfig(), &m) && m.GetRouteConfig() == nil && !k.config.has(m.GetRds().GetRouteConfigName()) {
				k.dangling(name, "route configuration", m.GetRds().GetRouteConfigName())
			}
		}
	}
}

func (k *walk) clusterReferences(name string, c *cluster.Cluster) {
	if c.GetType() == cluster.Cluster_EDS && c.GetClusterType() == nil {
		if eds := cmp.Or(c.GetEdsClusterConfig().GetServiceName(), name); k.config.endpoints[eds] == nil {
			k.dangling(name, "assignment", eds)
		}
	}
	k.secrets(name, c.GetTransportSocket())
	for _, m := range c.GetTransportSocketMatches() {
		k.secrets(name, m.GetTransportSocket())
	}
}

func (k *walk) dangling(resource, what, name string) {
	k.report(Violation{Code: Dangling, Resource: resource, Detail: fmt.Sprintf("%s %q is not there", what, name)})
}

// secrets checks the secrets of a TLS transport socket, on either side of a connection.
func (k *walk) secrets(resource string, socket *core.TransportSocket) {
	var down tls.DownstreamTlsContext
	var up tls.UpstreamTlsContext
	var common *tls.CommonTlsContext
	switch {
	case unpackAny(socket.GetTypedConfig(), &down):
		common = down.GetCommonTlsContext()
	case unpackAny(socket.GetTypedConfig(), &up):
		common = up.GetCommonTlsContext()
	default:
		return
	}
	for _, s := range append(common.GetTlsCertificateSdsSecretConfigs(), common.GetValidationContextSdsSecretConfig()) {
		if s != nil && k.config.secrets[s.GetName()] == nil {
			k.dangling(resource, "secret", s.GetName())
		}
	}
}

// flaw is what is wrong with a message by itself.
type flaw struct {
	code   Code
	detail string
}

// shape says what is wrong with a message whatever requests do: what would let Envoy choose hosts that are not in an
// assignment, or all of them at once; priorities that don't count up.
func shape(m message) []flaw {
	switch m := m.(type) {
	case *cluster.Cluster:
		return clusterShape(m)
	case *endpoint.ClusterLoadAssignment:
		return assignmentShape(m)
	case *tls.Secret:
		if key := m.GetTlsCertificate().GetPrivateKey(); key != nil && key.GetFilename() == "" {
			return []flaw{{Invalid, "a private key that is not a file on the proxy's own disk"}}
		}
	}
	return nil
}

func clusterShape(c *cluster.Cluster) []flaw {
	var flaws []flaw
	if threshold := c.GetCommonLbConfig().GetHealthyPanicThreshold(); threshold == nil || threshold.GetValue() != 0 {
		flaws = append(flaws, flaw{PanicEnabled, "unhealthy hosts would be used as well"})
	}
	var members aggregate.ClusterConfig
	switch {
	case c.GetClusterType() != nil:
		if !unpackAny(c.GetClusterType().GetTypedConfig(), &members) {
			flaws = append(flaws, flaw{NotAnalysable, "a cluster of type " + c.GetClusterType().GetName()})
		}
	case c.GetType() == cluster.Cluster_EDS:
		if c.GetEdsClusterConfig().GetEdsConfig().GetAds() == nil {
			flaws = append(flaws, flaw{NotAnalysable, "endpoints that don't come over ADS"})
		}
	case c.GetType() != cluster.Cluster_STATIC:
		flaws = append(flaws, flaw{NotAnalysable, fmt.Sprintf("a cluster of type %s: its addresses are not certain", c.GetType())})
	}
	if c.GetLbPolicy() == cluster.Cluster_CLUSTER_PROVIDED && c.GetClusterType() == nil {
		flaws = append(flaws, flaw{NotAnalysable, "the cluster provides its own load balancer"})
	}
	return append(flaws, append(upstreamShape(c), assignmentShape(c.GetLoadAssignment())...)...)
}

// upstreamShape refuses filters, after the choice of a host, that do more than strip our own headers.
func upstreamShape(c *cluster.Cluster) []flaw {
	var flaws []flaw
	for _, options := range c.GetTypedExtensionProtocolOptions() {
		var http upstream.HttpProtocolOptions
		if !unpackAny(options, &http) {
			flaws = append(flaws, flaw{NotAnalysable, "protocol options " + typeOf(options.GetTypeUrl())})
		}
		for _, f := range http.GetHttpFilters() {
			read, err := readFilter(f.GetTypedConfig())
			if !unpackAny(f.GetTypedConfig(), &codec.UpstreamCodec{}) && (err != nil || !stripsForged(read.config)) {
				flaws = append(flaws, flaw{NotAnalysable, "upstream filter " + f.GetName()})
			}
		}
	}
	return flaws
}

// assignmentShape checks that priorities count up from 0 without gaps, and that every locality carries traffic.
func assignmentShape(a *endpoint.ClusterLoadAssignment) []flaw {
	var flaws []flaw
	var seen []uint32
	for _, l := range a.GetEndpoints() {
		seen = append(seen, l.GetPriority())
		if l.GetLoadBalancingWeight().GetValue() == 0 {
			flaws = append(flaws, flaw{Invalid, "a locality without weight gets no traffic"})
		}
	}
	slices.Sort(seen)
	for i, p := range slices.Compact(seen) {
		if uint32(i) != p {
			return append(flaws, flaw{PriorityGap, fmt.Sprintf("priority %d is missing", i)})
		}
	}
	return flaws
}
