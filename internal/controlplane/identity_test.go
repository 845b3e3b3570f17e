package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	loadstats "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/meridian-mesh/meridian/internal/testbed/authority"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/xds/identity"
)

// securedPlane runs a plane over TLS with the examples' smallest mesh, until the test ends. Its only cluster is fra-1.
func securedPlane(t *testing.T) (plane *Plane, server, fra *authority.Authority) {
	t.Helper()
	dir := t.TempDir()
	var cas [2]*authority.Authority
	for i, domain := range []string{"plane.meridian", "fra-1.meridian"} {
		ca, err := authority.New(domain)
		if err != nil {
			t.Fatal(err)
		}
		cas[i] = ca
	}
	certificate, key, err := cas[0].Issue(authority.Leaf{Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := os.ReadFile("../../policies/examples/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"tls.crt": certificate, "tls.key": key, "fra-1.pem": cas[1].Bundle(), "policies.yaml": policy}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plane, err = New(Config{Policies: filepath.Join(dir, "policies.yaml"), XDS: "127.0.0.1:0", HTTP: "127.0.0.1:0", Demo: true, Log: slog.New(slog.DiscardHandler),
		TLS: &identity.TLS{CertificateFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"), ClientCAs: map[string]string{"fra-1.meridian": filepath.Join(dir, "fra-1.pem")}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- plane.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return plane, cas[0], cas[1]
}

// connect makes a client of a plane, with a certificate where an id is given.
func connect(t *testing.T, plane *Plane, server, ca *authority.Authority, id string) *grpc.ClientConn {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(server.Bundle())
	if id != "" {
		certificate, key, err := ca.Issue(authority.Leaf{IDs: []string{id}})
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	conn, err := grpc.NewClient(plane.XDS().String(), grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// calls are one of each service on the port. Each gives the error of its first answer.
var calls = map[string]func(ctx context.Context, conn *grpc.ClientConn, node *core.Node) error{
	"xDS": func(ctx context.Context, conn *grpc.ClientConn, node *core.Node) error {
		stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
		if err != nil {
			return err
		}
		if err := stream.Send(&discovery.DiscoveryRequest{Node: node, TypeUrl: "type.googleapis.com/envoy.config.listener.v3.Listener"}); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		_, err = stream.Recv()
		return err
	},
	"load reports": func(ctx context.Context, conn *grpc.ClientConn, node *core.Node) error {
		stream, err := loadstats.NewLoadReportingServiceClient(conn).StreamLoadStats(ctx)
		if err != nil {
			return err
		}
		if err := stream.Send(&loadstats.LoadStatsRequest{Node: node}); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		_, err = stream.Recv()
		return err
	},
	"geo service": func(ctx context.Context, conn *grpc.ClientConn, _ *core.Node) error {
		_, err := auth.NewAuthorizationClient(conn).Check(ctx, &auth.CheckRequest{})
		return err
	},
}

// Whatever the port offers, only proxies that prove who they are are offered it, and only their own.
func TestEveryServiceOnThePortAsksWhoIsThere(t *testing.T) {
	plane, server, fra := securedPlane(t)
	node := &core.Node{Id: "p", Cluster: "fra-1"}
	for name, c := range map[string]struct {
		id   string
		want map[string]codes.Code
	}{
		"nobody":   {"", map[string]codes.Code{"xDS": codes.Unauthenticated, "load reports": codes.Unauthenticated, "geo service": codes.Unauthenticated}},
		"its own":  {"spiffe://fra-1.meridian/gateway", map[string]codes.Code{"xDS": codes.OK, "load reports": codes.OK, "geo service": codes.OK}},
		"stranger": {"spiffe://iad-1.meridian/gateway", map[string]codes.Code{"xDS": codes.Unavailable, "load reports": codes.Unavailable, "geo service": codes.Unavailable}},
	} {
		conn := connect(t, plane, server, fra, c.id)
		for service, call := range calls {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			err := call(ctx, conn, node)
			for status.Code(err) == codes.NotFound && ctx.Err() == nil { // the policies are still being read
				err = call(ctx, conn, node)
			}
			cancel()
			if got := status.Code(err); got != c.want[service] {
				t.Errorf("%s, %s: %v, want %s", name, service, err, c.want[service])
			}
		}
	}
	response, err := http.Get("http://" + plane.HTTP().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`meridian_identity_checks_total{outcome="accepted"} 2`, `meridian_identity_checks_total{outcome="unauthenticated"} 2`, `meridian_tls_handshakes_in_flight{state="waiting"} 0`} {
		if !strings.Contains(string(body), "\n"+line+"\n") {
			t.Errorf("/metrics has no %s", line)
		}
	}
}

func TestIdentitiesNeedTLS(t *testing.T) {
	_, err := New(Config{Policies: t.TempDir(), XDS: "127.0.0.1:0", HTTP: "127.0.0.1:0", Demo: true, TokenReviews: map[policies.ClusterName]string{"fra-1": "kubeconfig"}})
	if err == nil || !strings.Contains(err.Error(), "over TLS only") {
		t.Errorf("tokens in plaintext: %v", err)
	}
	_, err = New(Config{Policies: t.TempDir(), XDS: "127.0.0.1:0", HTTP: "127.0.0.1:0", Demo: true, TLS: &identity.TLS{CertificateFile: "no-such-file", KeyFile: "no-such-file"}})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a certificate that is not there: %v", err)
	}
}
