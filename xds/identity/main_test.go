package identity_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/meridian-mesh/meridian/internal/testbed/authority"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var here = netip.MustParseAddr("127.0.0.1")

func newAuthority(t *testing.T, trustDomain string) *authority.Authority {
	t.Helper()
	a, err := authority.New(trustDomain)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// write puts files into a folder, each in one step.
func write(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, bytes := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

// issue puts a certificate and its key into a folder.
func issue(t *testing.T, ca *authority.Authority, dir string, leaf authority.Leaf) {
	t.Helper()
	certificate, key, err := ca.Issue(leaf)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string][]byte{"tls.crt": certificate, "tls.key": key})
}

// port is an xDS port that answers each call with the name of who makes it, or why it may not.
type port struct {
	dir           string
	server        *authority.Authority // of its own certificate
	credentials   *identity.Credentials
	authenticator *identity.Authenticator
	address       string
}

// config finds a port's files where openPort put them.
func config(dir string) identity.TLS {
	return identity.TLS{CertificateFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"), ClientCADir: filepath.Join(dir, "cas"), Poll: 5 * time.Millisecond}
}

// openPort serves two clusters, each with a trust domain of its own, until the test ends.
func openPort(t *testing.T, cas map[string]*authority.Authority, change func(*identity.TLS, *identity.Config)) *port {
	t.Helper()
	p := &port{dir: t.TempDir(), server: newAuthority(t, "control-plane")}
	issue(t, p.server, p.dir, authority.Leaf{Addresses: []netip.Addr{here}})
	if err := os.Mkdir(filepath.Join(p.dir, "cas"), 0o700); err != nil {
		t.Fatal(err)
	}
	for domain, ca := range cas {
		write(t, filepath.Join(p.dir, "cas"), map[string][]byte{domain + ".pem": ca.Bundle()})
	}
	files, asked := config(p.dir), identity.Config{ClusterOf: twoClusters}
	if change != nil {
		change(&files, &asked)
	}
	var err error
	if p.credentials, err = identity.NewCredentials(files); err != nil {
		t.Fatal(err)
	}
	asked.Credentials = p.credentials
	if p.authenticator, err = identity.New(asked); err != nil {
		t.Fatal(err)
	}
	run(t, p.credentials.Run)
	p.address = serve(t, p.authenticator, grpc.Creds(p.credentials))
	return p
}

// run runs something until the test ends.
func run(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// serve answers every call by what Check says of the viewpoint that it names.
func serve(t *testing.T, a *identity.Authenticator, options ...grpc.ServerOption) string {
	t.Helper()
	server := grpc.NewServer(append(options, grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var claimed wrapperspb.StringValue
		if err := stream.RecvMsg(&claimed); err != nil {
			return err
		}
		viewpoint, err := world.ParseViewpoint(world.ViewpointID(claimed.GetValue()))
		if err != nil {
			return err
		}
		who, err := a.Check(stream.Context(), viewpoint)
		if err != nil {
			return err
		}
		return stream.SendMsg(wrapperspb.String(who.Name()))
	}))...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	run(t, func(context.Context) error { return server.Serve(l) })
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

// twoClusters are fra-1 in frankfurt and iad-1 in virginia, without bindings.
func twoClusters(name policies.ClusterName) (*policies.Cluster, bool) {
	region, ok := map[policies.ClusterName]policies.RegionName{"fra-1": "frankfurt", "iad-1": "virginia"}[name]
	return clusterOf(name, region), ok
}

func clusterOf(name policies.ClusterName, region policies.RegionName, bindings ...policies.ProxyBinding) *policies.Cluster {
	return &policies.Cluster{Metadata: policies.Metadata[policies.ClusterName]{Name: name},
		Spec: policies.ClusterSpec{Region: region, TrustDomain: string(name) + ".meridian", Proxies: bindings}}
}

// clientTLS trusts the port, and has a certificate where ca is given.
func (p *port) clientTLS(t *testing.T, ca *authority.Authority, leaf authority.Leaf) *tls.Config {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.server.Bundle())
	c := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
	if ca != nil {
		certificate, key, err := ca.Issue(leaf)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

// dial makes a client of the port that lives until the test ends.
func (p *port) dial(t *testing.T, c *tls.Config, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	return dial(t, p.address, append(options, grpc.WithTransportCredentials(credentials.NewTLS(c)))...)
}

func dial(t *testing.T, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// claim asks the port for a viewpoint.
func claim(t *testing.T, conn *grpc.ClientConn, viewpoint string) (name string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var who wrapperspb.StringValue
	err = conn.Invoke(ctx, "/test.Port/Claim", wrapperspb.String(viewpoint), &who)
	return who.GetValue(), err
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(20*time.Second), time.NewTicker(2*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}
