package bootstrap

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	injector "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/credential_injector/v3"
	codec "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/upstream_codec/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	generic "github.com/envoyproxy/go-control-plane/envoy/extensions/http/injected_credentials/generic/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// TLS says how a proxy proves who it is to Meridian, and Meridian to it. All files are on the proxy's disk; Envoy reloads
// them when their folder changes. A proxy has a certificate or a token.
type TLS struct {
	// CAFile is a PEM bundle that vouches for Meridian. Required.
	CAFile string
	// CertificateFile and KeyFile are the proxy's own X.509-SVID and its key.
	CertificateFile, KeyFile string
	// TokenFile is a bearer token of the proxy's Kubernetes service account.
	TokenFile string
	// ServerName is whom Meridian's certificate must be for: a SPIFFE ID or a DNS name. Default: the addresses of the servers.
	ServerName string
	// SecretDir is the folder into which the files of Secrets go. Required.
	SecretDir string
}

// The secrets, each in a file of that name + ".yaml": Envoy takes up what has changed on disk only for secrets that it reads
// from elsewhere than its bootstrap.
const (
	secretIdentity = "meridian-identity"
	secretCA       = "meridian-ca"
	secretToken    = "meridian-token"
)

// check says what is missing.
func (t TLS) check() error {
	switch {
	case t.CAFile == "" || t.SecretDir == "":
		return errors.New("TLS: a CA and a folder for secrets are required")
	case (t.CertificateFile == "") != (t.KeyFile == ""):
		return errors.New("TLS: a certificate and its key are needed together")
	case t.CertificateFile == "" && t.TokenFile == "":
		return errors.New("TLS: a certificate or a token is required, for the proxy to prove who it is")
	}
	return nil
}

// Secrets are the files that Envoy needs beside its bootstrap, by path. They name certificates, keys and tokens, and hold
// none.
func (t TLS) Secrets() (map[string][]byte, error) {
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("write secrets: %w", err)
	}
	secrets := []*tls.Secret{{Name: secretCA, Type: &tls.Secret_ValidationContext{ValidationContext: &tls.CertificateValidationContext{
		TrustedCa: file(t.CAFile), WatchedDirectory: folder(t.CAFile)}}}}
	if t.CertificateFile != "" {
		secrets = append(secrets, &tls.Secret{Name: secretIdentity, Type: &tls.Secret_TlsCertificate{TlsCertificate: &tls.TlsCertificate{
			CertificateChain: file(t.CertificateFile), PrivateKey: file(t.KeyFile), WatchedDirectory: folder(t.CertificateFile)}}})
	}
	if t.TokenFile != "" {
		secrets = append(secrets, &tls.Secret{Name: secretToken, Type: &tls.Secret_GenericSecret{GenericSecret: &tls.GenericSecret{Secret: file(t.TokenFile)}}})
	}
	files := map[string][]byte{}
	for _, s := range secrets {
		resource, err := anypb.New(s)
		if err != nil {
			return nil, fmt.Errorf("write secret %s: %w", s.GetName(), err)
		}
		if files[t.secretFile(s.GetName())], err = asYAML(&discovery.DiscoveryResponse{Resources: []*anypb.Any{resource}}); err != nil {
			return nil, fmt.Errorf("write secret %s: %w", s.GetName(), err)
		}
	}
	return files, nil
}

func (t TLS) secretFile(name string) string { return filepath.Join(t.SecretDir, name+".yaml") }

func file(path string) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_Filename{Filename: path}}
}

func folder(path string) *core.WatchedDirectory {
	return &core.WatchedDirectory{Path: filepath.Dir(path)}
}

// secure makes the connections of a cluster TLS 1.3, with the proxy's identity, to Meridian and nobody else.
func (t TLS) secure(c *cluster.Cluster, protocol *http.HttpProtocolOptions, servers []netip.AddrPort) error {
	if err := t.check(); err != nil {
		return err
	}
	var err error
	if protocol.HttpFilters, err = t.filters(); err != nil {
		return err
	}
	context := &tls.UpstreamTlsContext{CommonTlsContext: &tls.CommonTlsContext{
		TlsParams:     &tls.TlsParameters{TlsMinimumProtocolVersion: tls.TlsParameters_TLSv1_3, TlsMaximumProtocolVersion: tls.TlsParameters_TLSv1_3},
		AlpnProtocols: []string{"h2"},
		ValidationContextType: &tls.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tls.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext:         &tls.CertificateValidationContext{MatchTypedSubjectAltNames: t.servers(servers)},
			ValidationContextSdsSecretConfig: t.secret(secretCA, t.CAFile),
		}},
	}}
	if t.CertificateFile != "" {
		context.CommonTlsContext.TlsCertificateSdsSecretConfigs = []*tls.SdsSecretConfig{t.secret(secretIdentity, t.CertificateFile)}
	}
	if !strings.HasPrefix(t.ServerName, "spiffe://") {
		context.Sni = t.ServerName
	}
	config, err := anypb.New(context)
	if err != nil {
		return err
	}
	c.TransportSocket = &core.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: config}}
	return nil
}

// filters put the token, where there is one, into requests.
func (t TLS) filters() ([]*hcm.HttpFilter, error) {
	if t.TokenFile == "" {
		return nil, nil
	}
	generic, err := anypb.New(&generic.Generic{Credential: t.secret(secretToken, t.TokenFile), Header: "authorization", HeaderValuePrefix: "Bearer "})
	if err != nil {
		return nil, err
	}
	injector, err := anypb.New(&injector.CredentialInjector{Overwrite: true, Credential: &core.TypedExtensionConfig{Name: "envoy.http.injected_credentials.generic", TypedConfig: generic}})
	if err != nil {
		return nil, err
	}
	last, err := anypb.New(&codec.UpstreamCodec{})
	if err != nil {
		return nil, err
	}
	return []*hcm.HttpFilter{
		{Name: "envoy.filters.http.credential_injector", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: injector}},
		{Name: "envoy.filters.http.upstream_codec", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: last}},
	}, nil
}

// secret reads a secret from its file, and again when something is moved into the folder of what it names.
func (t TLS) secret(name, watched string) *tls.SdsSecretConfig {
	return &tls.SdsSecretConfig{Name: name, SdsConfig: &core.ConfigSource{ResourceApiVersion: core.ApiVersion_V3,
		ConfigSourceSpecifier: &core.ConfigSource_PathConfigSource{PathConfigSource: &core.PathConfigSource{Path: t.secretFile(name), WatchedDirectory: folder(watched)}}}}
}

// servers are the names of which Meridian's certificate must have one.
func (t TLS) servers(addresses []netip.AddrPort) []*tls.SubjectAltNameMatcher {
	exactly := func(kind tls.SubjectAltNameMatcher_SanType, name string) *tls.SubjectAltNameMatcher {
		return &tls.SubjectAltNameMatcher{SanType: kind, Matcher: &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: name}}}
	}
	switch {
	case strings.HasPrefix(t.ServerName, "spiffe://"):
		return []*tls.SubjectAltNameMatcher{exactly(tls.SubjectAltNameMatcher_URI, t.ServerName)}
	case t.ServerName != "":
		return []*tls.SubjectAltNameMatcher{exactly(tls.SubjectAltNameMatcher_DNS, t.ServerName)}
	}
	var names []*tls.SubjectAltNameMatcher
	for _, a := range addresses {
		names = append(names, exactly(tls.SubjectAltNameMatcher_IP_ADDRESS, a.Addr().String()))
	}
	return names
}
