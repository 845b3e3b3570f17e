package identity_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meridian-mesh/meridian/internal/testbed/authority"
	"github.com/meridian-mesh/meridian/internal/testbed/kube"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/xds/identity"
)

// startKube starts a real API server that ends with the test.
func startKube(t *testing.T, name string) *kube.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := kube.Start(ctx, kube.Config{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// kubeconfigOf is a file that reaches an API server as whoever has a token; as an administrator where that is empty.
func kubeconfigOf(t *testing.T, s *kube.Server, token string) string {
	t.Helper()
	content, err := s.Kubeconfig()
	if token != "" {
		content, err = s.KubeconfigOf(token)
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newReviewer(t *testing.T, config identity.ReviewConfig) *identity.Reviewer {
	t.Helper()
	r, err := identity.NewReviewer(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func tokenOf(t *testing.T, s *kube.Server, a kube.Account) string {
	t.Helper()
	token, err := s.Token(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// bearer is a token that is sent with each call, over TLS only.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return true }

// boundCluster binds the service accounts of fra-1, and nobody of iad-1.
func boundCluster(name policies.ClusterName) (*policies.Cluster, bool) {
	if name == "fra-1" {
		return clusterOf("fra-1", "frankfurt",
			policies.ProxyBinding{Role: policies.RoleGateway, ServiceAccounts: []string{"mesh/gateway"}},
			policies.ProxyBinding{Role: policies.RoleSidecar, ServiceAccounts: []string{"acme/chat"}, Tenants: []policies.Tenant{"acme"}}), true
	}
	return twoClusters(name)
}

// A proxy proves who it is by the token of its pod's service account, to the API server of the cluster that it claims.
func TestAPeerIsWhoItsClustersAPIServerSays(t *testing.T) {
	fra, iad := startKube(t, "fra-1"), startKube(t, "iad-1")
	p := openPort(t, map[string]*authority.Authority{"fra-1.meridian": newAuthority(t, "fra-1.meridian")}, func(_ *identity.TLS, c *identity.Config) {
		c.ClusterOf = boundCluster
		c.Reviewers = map[policies.ClusterName]*identity.Reviewer{
			"fra-1": newReviewer(t, identity.ReviewConfig{Cluster: "fra-1", Kubeconfig: kubeconfigOf(t, fra, "")}),
			"iad-1": newReviewer(t, identity.ReviewConfig{Cluster: "iad-1", Kubeconfig: kubeconfigOf(t, iad, "")}),
		}
	})
	gateway := kube.Account{Namespace: "mesh", Name: "gateway", Pod: "gateway-0", Audiences: []string{identity.Audience}}
	chat := kube.Account{Namespace: "acme", Name: "chat", Audiences: []string{identity.Audience}}
	good := tokenOf(t, fra, gateway)
	aged, err := fra.Aged(good, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	const claimed = "gateway/frankfurt/fra-1"
	for name, c := range map[string]struct {
		token, claimed string
		want           codes.Code
		mentioned      string
	}{
		"its own":                       {good, claimed, codes.OK, "fra-1:mesh/gateway/gateway-0"},
		"bound to no pod":               {tokenOf(t, fra, kube.Account{Namespace: "mesh", Name: "gateway", Audiences: []string{"else", identity.Audience}}), claimed, codes.OK, "fra-1:mesh/gateway"},
		"its own tenant":                {tokenOf(t, fra, chat), "sidecar/frankfurt/fra-1@acme", codes.OK, "fra-1:acme/chat"},
		"another tenant":                {tokenOf(t, fra, chat), "sidecar/frankfurt/fra-1@acme+globex", codes.PermissionDenied, "some tenants only"},
		"another role":                  {good, "sidecar/frankfurt/fra-1", codes.PermissionDenied, "for role sidecar"},
		"another account":               {tokenOf(t, fra, kube.Account{Namespace: "mesh", Name: "other", Audiences: []string{identity.Audience}}), claimed, codes.PermissionDenied, "proves to be fra-1:mesh/other: spec.proxies of Cluster fra-1 does not name it"},
		"the same name elsewhere":       {tokenOf(t, iad, gateway), claimed, codes.Unauthenticated, "cluster fra-1 does not vouch"},
		"another cluster":               {good, "gateway/virginia/iad-1", codes.Unauthenticated, "cluster iad-1 does not vouch"},
		"a cluster that binds nobody":   {tokenOf(t, iad, gateway), "gateway/virginia/iad-1", codes.PermissionDenied, "names no service accounts"},
		"for somebody else":             {tokenOf(t, fra, kube.Account{Namespace: "mesh", Name: "gateway", Audiences: []string{"vault"}}), claimed, codes.Unauthenticated, "does not vouch"},
		"for the API server":            {tokenOf(t, fra, kube.Account{Namespace: "mesh", Name: "gateway"}), claimed, codes.Unauthenticated, "does not vouch"},
		"expired":                       {aged, claimed, codes.Unauthenticated, "does not vouch"},
		"garbage":                       {"garbage", claimed, codes.Unauthenticated, "does not vouch"},
		"with another's signature":      {parts[0] + "." + parts[1] + "." + strings.Split(tokenOf(t, fra, chat), ".")[2], claimed, codes.Unauthenticated, "does not vouch"},
		"larger than any token":         {strings.Repeat("x", 17<<10), claimed, codes.Unauthenticated, "more than 16384 bytes"},
		"of a cluster without reviewer": {good, "gateway/frankfurt/gru-1", codes.Unauthenticated, "no API server is known"},
	} {
		t.Run(name, func(t *testing.T) {
			who, err := claim(t, p.dial(t, p.clientTLS(t, nil, authority.Leaf{}), grpc.WithPerRPCCredentials(bearer(c.token))), c.claimed)
			text := who + status.Convert(err).Message()
			if got := status.Code(err); got != c.want || !strings.Contains(text, c.mentioned) {
				t.Errorf("%s %q, %v; want %s that mentions %q", got, who, err, c.want, c.mentioned)
			}
			if len(c.token) > 20 && strings.Contains(text, c.token[:20]) {
				t.Errorf("%q has the token in it", text)
			}
		})
	}
}

// What the API server does not answer is not permitted; what it said is remembered for a while, and no longer.
func TestReviewsFailClosed(t *testing.T) {
	fra := startKube(t, "fra-1")
	path := kubeconfigOf(t, fra, "")
	remembering := newReviewer(t, identity.ReviewConfig{Cluster: "fra-1", Kubeconfig: path, Remember: time.Hour, Timeout: 200 * time.Millisecond})
	forgetful := newReviewer(t, identity.ReviewConfig{Cluster: "fra-1", Kubeconfig: path, Remember: time.Nanosecond, Timeout: 200 * time.Millisecond})
	account := kube.Account{Namespace: "mesh", Name: "gateway", Audiences: []string{identity.Audience}}
	token := tokenOf(t, fra, account)
	for name, r := range map[string]*identity.Reviewer{"remembering": remembering, "forgetful": forgetful} {
		until(t, name+" is answered", func() bool {
			got, err := r.Review(t.Context(), token)
			return err == nil && got.String() == "fra-1:mesh/gateway"
		})
	}
	if err := fra.Pause(); err != nil {
		t.Fatal(err)
	}
	if _, err := remembering.Review(t.Context(), token); err != nil {
		t.Errorf("a token that was good a moment ago: %v", err)
	}
	asked := 0
	until(t, "a token that is not known is not answered", func() bool { // it may take a moment to fall silent
		asked++
		_, err := remembering.Review(t.Context(), fmt.Sprint(token, asked))
		return status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "API server of cluster fra-1")
	})
	if got, err := forgetful.Review(t.Context(), token); status.Code(err) != codes.Unavailable {
		t.Errorf("a token that was forgotten, and the API server is silent: %v, %v", got, err)
	}
	if err := fra.Resume(); err != nil {
		t.Fatal(err)
	}
	until(t, "the API server answers again", func() bool {
		_, err := forgetful.Review(t.Context(), token)
		return err == nil
	})
	nobody := newReviewer(t, identity.ReviewConfig{Cluster: "fra-1", Kubeconfig: kubeconfigOf(t, fra, tokenOf(t, fra, kube.Account{Namespace: "mesh", Name: "nobody"}))})
	if _, err := nobody.Review(t.Context(), token); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("a reviewer that may not review: %v", err)
	}
}

// Tokens are only given to API servers that prove who they are.
func TestTokensAreReviewedOverTLSOnly(t *testing.T) {
	const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {%}}]}`
	for server, want := range map[string]string{
		"server: 'https://10.0.0.1:6443'":                                  "",
		"server: 'http://127.0.0.1:8001'":                                  "",
		"server: 'http://[::1]:8001'":                                      "",
		"server: 'http://10.0.0.1:8001'":                                   "not reached by TLS",
		"server: 'http://localhost.example.org:80'":                        "not reached by TLS",
		"server: '10.0.0.1:8001'":                                          "server's address",
		"server: 'https://10.0.0.1:6443', insecure-skip-tls-verify: true":  "insecure-skip-tls-verify",
		"server: 'https://10.0.0.1:6443', certificate-authority: /no/file": "no such file",
		"server: [": "did not find expected",
	} {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(path, []byte(strings.Replace(kubeconfig, "%", server, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := identity.NewReviewer(identity.ReviewConfig{Cluster: "fra-1", Kubeconfig: path})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", server, err, want)
		}
	}
	if _, err := identity.New(identity.Config{ClusterOf: twoClusters, Reviewers: map[policies.ClusterName]*identity.Reviewer{"fra-1": nil}}); err == nil {
		t.Error("tokens would be read in plaintext")
	}
}
