package verify

import (
	"slices"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/xds"
)

// downstreamPeer checks that a filter chain for other gateways requires a certificate of a cluster's trust domain.
func (k *walk) downstreamPeer(chain *listener.FilterChain) {
	var context tls.DownstreamTlsContext
	why := ""
	switch {
	case !unpackAny(chain.GetTransportSocket().GetTypedConfig(), &context):
		why = "it is not TLS"
	case !context.GetRequireClientCertificate().GetValue():
		why = "it does not require a client certificate"
	default:
		why = k.distrusts(context.GetCommonTlsContext(), func(domain string) bool {
			return slices.ContainsFunc(k.set.Clusters, func(c policies.Cluster) bool { return c.Spec.TrustDomain == domain })
		})
	}
	if why != "" {
		k.report(Violation{Code: PeerNotAuthenticated, Resource: xds.EastWestListener, Route: chain.GetName(), Detail: why})
	}
}

// upstreamPeer checks that a gateway must prove to be of its cluster's trust domain, and gives the server name by which
// it is asked.
func (k *walk) upstreamPeer(via string, peer policies.ClusterName, socket *core.TransportSocket) string {
	var context tls.UpstreamTlsContext
	why := ""
	if !unpackAny(socket.GetTypedConfig(), &context) {
		why = "requests go to it without TLS"
	} else if c, ok := k.set.Cluster(peer); ok {
		why = k.distrusts(context.GetCommonTlsContext(), func(domain string) bool { return domain == c.Spec.TrustDomain })
	}
	if why == "" && len(context.GetCommonTlsContext().GetTlsCertificateSdsSecretConfigs()) == 0 {
		why = "no certificate is shown to it"
	}
	if why != "" {
		k.report(Violation{Code: PeerNotAuthenticated, Resource: via, Cluster: via, Detail: "gateway of cluster " + string(peer) + ": " + why})
	}
	return context.GetSni()
}

// distrusts says why a context does not check SPIFFE identities, or trusts a domain that it should not; empty where all
// is well.
func (k *walk) distrusts(common *tls.CommonTlsContext, known func(domain string) bool) string {
	var spiffe tls.SPIFFECertValidatorConfig
	validator := common.GetValidationContext().GetCustomValidatorConfig()
	if !unpackAny(validator.GetTypedConfig(), &spiffe) || len(spiffe.GetTrustDomains()) == 0 {
		return "it does not check SPIFFE identities"
	}
	for _, d := range spiffe.GetTrustDomains() {
		if !known(d.GetName()) {
			return "it trusts " + d.GetName()
		}
	}
	return ""
}

// matchedSockets is where endpoints say which of a cluster's transport sockets is theirs.
const matchedSockets = "envoy.transport_socket_match"

// socketFor is the transport socket that Envoy uses for a host: the first whose match is in the host's metadata.
func socketFor(c *cluster.Cluster, host *endpoint.LbEndpoint) *core.TransportSocket {
	own := host.GetMetadata().GetFilterMetadata()[matchedSockets].GetFields()
	for _, m := range c.GetTransportSocketMatches() {
		fits := true
		for key, v := range m.GetMatch().GetFields() {
			fits = fits && proto.Equal(own[key], v)
		}
		if fits {
			return m.GetTransportSocket()
		}
	}
	return c.GetTransportSocket()
}
