package build

import (
	"path"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/xds"
)

// secrets names the files that hold certificates, keys and client CAs on the proxy's disk; Envoy reloads them when their
// directory changes. No key passes through here.
func (b *builder) secrets(c *collector) {
	if e := b.gateway.Spec.EastWest; e != nil {
		c.add(xds.TypeSecret, xds.SecretIdentity, certificateSecret(xds.SecretIdentity, e.CertificateFile, e.PrivateKeyFile))
	}
	for _, l := range b.gateway.Spec.Listeners {
		if l.TLS == nil {
			continue
		}
		name := xds.SecretListener(b.gateway.Metadata.Name, l.Name)
		c.add(xds.TypeSecret, name, certificateSecret(name, l.TLS.CertificateFile, l.TLS.PrivateKeyFile))
		if l.TLS.ClientCAFile != "" {
			ca := xds.SecretClientCA(b.gateway.Metadata.Name, l.Name)
			c.add(xds.TypeSecret, ca, &tls.Secret{Name: ca, Type: &tls.Secret_ValidationContext{ValidationContext: &tls.CertificateValidationContext{
				TrustedCa: file(l.TLS.ClientCAFile), WatchedDirectory: &core.WatchedDirectory{Path: path.Dir(l.TLS.ClientCAFile)},
			}}})
		}
	}
}

func certificateSecret(name, certificate, key string) *tls.Secret {
	return &tls.Secret{Name: name, Type: &tls.Secret_TlsCertificate{TlsCertificate: &tls.TlsCertificate{
		CertificateChain: file(certificate), PrivateKey: file(key), WatchedDirectory: &core.WatchedDirectory{Path: path.Dir(certificate)},
	}}}
}

func file(name string) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_Filename{Filename: name}}
}

func secretConfig(name string) *tls.SdsSecretConfig {
	return &tls.SdsSecretConfig{Name: name, SdsConfig: overADS()}
}

// listenerTLS is the transport socket of a client-facing listener; nil for plaintext.
func (b *builder) listenerTLS(c *collector, l *policies.Listener) *core.TransportSocket {
	if l.TLS == nil {
		return nil
	}
	context := &tls.DownstreamTlsContext{CommonTlsContext: &tls.CommonTlsContext{
		AlpnProtocols:                  []string{"h2", "http/1.1"},
		TlsCertificateSdsSecretConfigs: []*tls.SdsSecretConfig{secretConfig(xds.SecretListener(b.gateway.Metadata.Name, l.Name))},
	}}
	if l.TLS.ClientCAFile != "" {
		context.RequireClientCertificate = boolValue(true)
		context.CommonTlsContext.ValidationContextType = &tls.CommonTlsContext_ValidationContextSdsSecretConfig{
			ValidationContextSdsSecretConfig: secretConfig(xds.SecretClientCA(b.gateway.Metadata.Name, l.Name))}
	}
	return transportSocket("envoy.transport_sockets.tls", c.any(context))
}

// fromGateways is the transport socket of connections from other clusters' gateways: TLS 1.3, a client certificate of a
// known trust domain required.
func (b *builder) fromGateways(c *collector, alpn ...string) *core.TransportSocket {
	common := b.meshTLS(c, b.trustDomains(), alpn)
	return transportSocket("envoy.transport_sockets.tls", c.any(&tls.DownstreamTlsContext{CommonTlsContext: common, RequireClientCertificate: boolValue(true)}))
}

// toGateways is the transport socket of connections to the gateways of one cluster: it must prove to be of that cluster's
// trust domain.
func (b *builder) toGateways(c *collector, cluster *policies.Cluster, serverName string, alpn ...string) *core.TransportSocket {
	common := b.meshTLS(c, []string{cluster.Spec.TrustDomain}, alpn)
	return transportSocket("envoy.transport_sockets.tls", c.any(&tls.UpstreamTlsContext{CommonTlsContext: common, Sni: serverName}))
}

// meshTLS presents the proxy's identity and trusts peers of the given SPIFFE trust domains only.
func (b *builder) meshTLS(c *collector, trustDomains, alpn []string) *tls.CommonTlsContext {
	validator := &tls.SPIFFECertValidatorConfig{}
	validation := &tls.CertificateValidationContext{}
	for _, d := range trustDomains {
		validator.TrustDomains = append(validator.TrustDomains, &tls.SPIFFECertValidatorConfig_TrustDomain{
			Name: d, TrustBundle: file(path.Join(b.gateway.Spec.EastWest.TrustBundleDir, d+".pem"))})
		validation.MatchTypedSubjectAltNames = append(validation.MatchTypedSubjectAltNames, &tls.SubjectAltNameMatcher{
			SanType: tls.SubjectAltNameMatcher_URI, Matcher: &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Prefix{Prefix: "spiffe://" + d + "/"}}})
	}
	validation.CustomValidatorConfig = extension("envoy.tls.cert_validator.spiffe", c.any(validator))
	return &tls.CommonTlsContext{
		TlsParams:                      &tls.TlsParameters{TlsMinimumProtocolVersion: tls.TlsParameters_TLSv1_3, TlsMaximumProtocolVersion: tls.TlsParameters_TLSv1_3},
		AlpnProtocols:                  alpn,
		TlsCertificateSdsSecretConfigs: []*tls.SdsSecretConfig{secretConfig(xds.SecretIdentity)},
		ValidationContextType:          &tls.CommonTlsContext_ValidationContext{ValidationContext: validation},
	}
}

// trustDomains are those of all clusters, sorted by cluster, each once.
func (b *builder) trustDomains() []string {
	var domains []string
	seen := map[string]bool{}
	for _, c := range b.set.Clusters {
		if !seen[c.Spec.TrustDomain] {
			domains = append(domains, c.Spec.TrustDomain)
		}
		seen[c.Spec.TrustDomain] = true
	}
	return domains
}
