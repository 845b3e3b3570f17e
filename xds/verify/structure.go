package verify

import (
	"fmt"
	"slices"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// structure checks what holds whatever a request does: clusters that Envoy's own reactions keep inside, assignments whose
// priorities count up, listeners that don't collide, secrets that are there.
func (k *walk) structure() {
	for name, c := range k.config.clusters {
		k.clusterShape(name, c)
	}
	for name, e := range k.config.endpoints {
		k.priorities(name, e)
	}
	bound := map[string]string{}
	for name, l := range k.config.listeners {
		if a, ok := socket(l.GetAddress()); ok {
			if other, taken := bound[a.String()]; taken {
				k.report(Violation{Code: AddressInUse, Resource: max(name, other), Address: a, Detail: "also bound by " + min(name, other)})
			}
			bound[a.String()] = name
		}
		for _, chain := range l.GetFilterChains() {
			k.downstreamSecrets(name, chain.GetTransportSocket().GetTypedConfig().GetTypeUrl(), chain.GetTransportSocket().GetTypedConfig().GetValue())
		}
	}
}

func (k *walk) downstreamSecrets(name, url string, value []byte) {
	if url == "" {
		return
	}
	var context tls.DownstreamTlsContext
	if !unpack(url, value, &context) {
		k.notAnalysable(name, "transport socket %s", url)
		return
	}
	k.secrets(name, context.GetCommonTlsContext())
}

func (k *walk) secrets(name string, common *tls.CommonTlsContext) {
	for _, s := range common.GetTlsCertificateSdsSecretConfigs() {
		k.secret(name, s)
	}
	k.secret(name, common.GetValidationContextSdsSecretConfig())
	k.secret(name, common.GetCombinedValidationContext().GetValidationContextSdsSecretConfig())
}

func (k *walk) secret(name string, s *tls.SdsSecretConfig) {
	if s == nil {
		return
	}
	if _, ok := k.config.secrets[s.GetName()]; !ok {
		k.report(Violation{Code: Dangling, Resource: name, Detail: fmt.Sprintf("secret %q is not there", s.GetName())})
	}
}

// clusterShape refuses what would let Envoy choose hosts that are not in the assignment, or all of them at once.
func (k *walk) clusterShape(name string, c *cluster.Cluster) {
	if threshold := c.GetCommonLbConfig().GetHealthyPanicThreshold(); threshold == nil || threshold.GetValue() != 0 {
		k.report(Violation{Code: PanicEnabled, Resource: name, Cluster: name})
	}
	switch {
	case c.GetLbSubsetConfig() != nil:
		k.notAnalysable(name, "subset load balancing")
	case c.GetLoadBalancingPolicy() != nil:
		k.notAnalysable(name, "a load balancing policy extension")
	case c.GetLbPolicy() == cluster.Cluster_CLUSTER_PROVIDED && c.GetClusterType() == nil:
		k.notAnalysable(name, "the cluster provides its own load balancer")
	}
	if url := c.GetTransportSocket().GetTypedConfig().GetTypeUrl(); url != "" {
		var context tls.UpstreamTlsContext
		if unpack(url, c.GetTransportSocket().GetTypedConfig().GetValue(), &context) {
			k.secrets(name, context.GetCommonTlsContext())
		}
	}
}

// priorities must count up from 0 without gaps, and every locality must carry traffic.
func (k *walk) priorities(name string, e *endpoint.ClusterLoadAssignment) {
	var seen []uint32
	for _, l := range e.GetEndpoints() {
		seen = append(seen, l.GetPriority())
		if l.GetLoadBalancingWeight().GetValue() == 0 {
			k.report(Violation{Code: Invalid, Resource: name, Detail: "a locality without weight gets no traffic"})
		}
		if l.GetLedsClusterLocalityConfig() != nil || l.GetLoadBalancerEndpoints() != nil {
			k.notAnalysable(name, "endpoints that come from elsewhere")
		}
	}
	slices.Sort(seen)
	for i, p := range slices.Compact(seen) {
		if uint32(i) != p {
			k.report(Violation{Code: PriorityGap, Resource: name, Cluster: name, Detail: fmt.Sprintf("priority %d is missing", i)})
			return
		}
	}
	if len(e.GetNamedEndpoints()) > 0 {
		k.notAnalysable(name, "named endpoints")
	}
}
