package bootstrap

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// TLS says how a proxy proves who it is to Meridian, and Meridian to it. All files are on the proxy's disk; Envoy reloads
// them when their folder changes.
type TLS struct {
	// CAFile is a PEM bundle that vouches for Meridian. Required.
	CAFile string
	// CertificateFile and KeyFile are the proxy's own X.509-SVID and its key. Required.
	CertificateFile, KeyFile string
	// ServerName is whom Meridian's certificate must be for: a SPIFFE ID or a DNS name. Default: the addresses of the servers.
	ServerName string
	// SecretDir is the folder into which the files of Secrets go. Required.
	SecretDir string
}

// The secrets, each in a file of that name + ".yaml": Envoy takes up changed certificates only for secrets that it reads from
// elsewhere than its bootstrap.
const (
	secretIdentity = "meridian-identity"
	secretCA       = "meridian-ca"
)

// Secrets are the files that Envoy needs beside its bootstrap, by path. They name certificates and keys, and hold none.
func (t TLS) Secrets() (map[string][]byte, error) {
	if t.CAFile == "" || t.CertificateFile == "" || t.KeyFile == "" || t.SecretDir == "" {
		return nil, errors.New("write secrets: a CA, a certificate, a key and a folder for secrets are required")
	}
	files := map[string][]byte{}
	for _, s := range []*tls.Secret{
		{Name: secretIdentity, Type: &tls.Secret_TlsCertificate{TlsCertificate: &tls.TlsCertificate{
			CertificateChain: file(t.CertificateFile), PrivateKey: file(t.KeyFile), WatchedDirectory: folder(t.CertificateFile)}}},
		{Name: secretCA, Type: &tls.Secret_ValidationContext{ValidationContext: &tls.CertificateValidationContext{
			TrustedCa: file(t.CAFile), WatchedDirectory: folder(t.CAFile)}}},
	} {
		resource, err := anypb.New(s)
		if err != nil {
			return nil, fmt.Errorf("write secret %s: %w", s.GetName(), err)
		}
		content, err := asYAML(&discovery.DiscoveryResponse{Resources: []*anypb.Any{resource}})
		if err != nil {
			return nil, fmt.Errorf("write secret %s: %w", s.GetName(), err)
		}
		files[t.secretFile(s.GetName())] = content
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
func (t TLS) secure(c *cluster.Cluster, servers []netip.AddrPort) error {
	if _, err := t.Secrets(); err != nil {
		return err
	}
	context := &tls.UpstreamTlsContext{CommonTlsContext: &tls.CommonTlsContext{
		TlsParams:                      &tls.TlsParameters{TlsMinimumProtocolVersion: tls.TlsParameters_TLSv1_3, TlsMaximumProtocolVersion: tls.TlsParameters_TLSv1_3},
		AlpnProtocols:                  []string{"h2"},
		TlsCertificateSdsSecretConfigs: []*tls.SdsSecretConfig{t.secret(secretIdentity)},
		ValidationContextType: &tls.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tls.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext:         &tls.CertificateValidationContext{MatchTypedSubjectAltNames: t.servers(servers)},
			ValidationContextSdsSecretConfig: t.secret(secretCA),
		}},
	}}
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

// secret reads a secret from its file.
func (t TLS) secret(name string) *tls.SdsSecretConfig {
	return &tls.SdsSecretConfig{Name: name, SdsConfig: &core.ConfigSource{ResourceApiVersion: core.ApiVersion_V3,
		ConfigSourceSpecifier: &core.ConfigSource_PathConfigSource{PathConfigSource: &core.PathConfigSource{Path: t.secretFile(name), WatchedDirectory: folder(t.secretFile(name))}}}}
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
