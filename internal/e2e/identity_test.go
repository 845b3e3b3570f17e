package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/meridian-mesh/meridian/internal/testbed/authority"
	"github.com/meridian-mesh/meridian/internal/testbed/envoy"
	"github.com/meridian-mesh/meridian/internal/testbed/kube"
	"github.com/meridian-mesh/meridian/internal/testbed/loopback"
	"github.com/meridian-mesh/meridian/xds/serve"
)

// oneEach is a mesh of two clusters in two regions, with one gateway each. %d is where they listen.
const oneEach = `apiVersion: meridian.dev/v1alpha1
kind: Region
metadata: {name: frankfurt}
spec: {cloud: aws/eu-central-1}
---
apiVersion: meridian.dev/v1alpha1
kind: Region
metadata: {name: virginia}
spec: {cloud: aws/us-east-1}
---
apiVersion: meridian.dev/v1alpha1
kind: Cluster
metadata: {name: fra-1}
spec: {region: frankfurt, proxies: [{role: gateway, spiffeIDs: [spiffe://fra-1.meridian/gateway], serviceAccounts: [mesh/gateway]}]}
---
apiVersion: meridian.dev/v1alpha1
kind: Cluster
metadata: {name: iad-1}
spec: {region: virginia}
---
apiVersion: meridian.dev/v1alpha1
kind: Service
metadata: {name: llama}
spec: {models: [llama], capacity: {source: Static}, pools: [{cluster: fra-1, endpoints: [{address: 127.0.0.1, port: 9}]}]}
---
apiVersion: meridian.dev/v1alpha1
kind: Gateway
metadata: {name: edge}
spec: {listeners: [{name: http, port: %d}]}
`

// domain is one cluster's CA and its gateway's files.
type domain struct {
	ca  *authority.Authority
	dir string
}

func newDomain(t *testing.T, trustDomain string) domain {
	t.Helper()
	ca, err := authority.New(trustDomain)
	if err != nil {
		t.Fatal(err)
	}
	return domain{ca, t.TempDir()}
}

// issue puts a certificate and its key in place, each in one step.
func (d domain) issue(t *testing.T, leaf authority.Leaf) {
	t.Helper()
	certificate, key, err := d.ca.Issue(leaf)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, filepath.Join(d.dir, "tls.key"), key)
	replace(t, filepath.Join(d.dir, "tls.crt"), certificate)
}

func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// flags prove who the gateway is.
func (d domain) flags() []string {
	return []string{"--cert", filepath.Join(d.dir, "tls.crt"), "--key", filepath.Join(d.dir, "tls.key"), "--secret-dir", d.dir}
}

// join starts an Envoy as a gateway of fra-1, from what `meridian bootstrap` prints with flags that prove who it is.
func join(ctx context.Context, t *testing.T, s *server, flags ...string) (*envoy.Process, error) {
	t.Helper()
	admin, err := loopback.Free(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	bootstrap, err := exec.CommandContext(t.Context(), s.binary, append([]string{"bootstrap", "--cluster", "fra-1", "--id", "fra-1-gateway",
		"--server", s.xds.String(), "--admin", admin.String()}, flags...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	p, err := envoy.Start(ctx, envoy.Config{Bootstrap: bootstrap, Admin: admin})
	if err == nil {
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(p.Log())
			}
			if err := p.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	return p, err
}

// serials are the serial numbers of the certificates that an Envoy has loaded.
func serials(t *testing.T, p *envoy.Process) []string {
	t.Helper()
	body, err := p.Get(t.Context(), "/certs")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`"serial_number": "([0-9a-f]+)"`).FindAllStringSubmatch(string(body), -1) {
		found[m[1]] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// secured is what a control plane over TLS, and its proxies, are given on disk.
type secured struct {
	plane   domain
	planeCA string // where proxies have the CA of plane
	args    []string
}

func secure(t *testing.T) secured {
	t.Helper()
	listen, err := loopback.Free(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	s, policyDir := secured{plane: newDomain(t, "plane.meridian"), planeCA: filepath.Join(t.TempDir(), "ca.pem")}, t.TempDir()
	replace(t, filepath.Join(policyDir, "mesh.yaml"), fmt.Appendf(nil, oneEach, listen.Port()))
	s.plane.issue(t, hereOnly)
	replace(t, s.planeCA, s.plane.ca.Bundle())
	s.args = []string{"--policies", policyDir, "--tls-cert", filepath.Join(s.plane.dir, "tls.crt"), "--tls-key", filepath.Join(s.plane.dir, "tls.key")}
	return s
}

// hereOnly is the certificate of a server on loopback.
var hereOnly = authority.Leaf{Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}

// joined says whether a gateway of fra-1, and nobody else, has its own configuration.
func (s *server) joined(t *testing.T) bool {
	proxies := s.status(t).Proxies
	return len(proxies) == 1 && proxies[0].State == serve.Synced && proxies[0].Viewpoint == "gateway/frankfurt/fra-1"
}

// A gateway joins over mutual TLS and gets its own configuration; with the certificate of another cluster it gets none; and
// when its CA, its certificate, and the control plane's have all been replaced it joins again.
func TestEnvoyJoinsOverMutualTLS(t *testing.T) {
	fra, iad, mesh, bundles, binary := newDomain(t, "fra-1.meridian"), newDomain(t, "iad-1.meridian"), secure(t), t.TempDir(), build(t)
	for name, d := range map[string]domain{"fra-1.meridian": fra, "iad-1.meridian": iad} {
		d.issue(t, authority.Leaf{IDs: []string{"spiffe://" + name + "/gateway"}})
		replace(t, filepath.Join(bundles, name+".pem"), d.ca.Bundle())
	}
	args := append(mesh.args, "--client-ca-dir", bundles)
	first := startServer(t, binary, args...)
	until(t, "the control plane is ready", func() bool { return strings.HasPrefix(first.get(t, "/readyz"), "200 ") })

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	gateway, err := join(ctx, t, first, append(fra.flags(), "--xds-ca", mesh.planeCA)...)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the gateway has its own configuration", func() bool { return first.joined(t) })

	brief, cancelBrief := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancelBrief()
	if _, err := join(brief, t, first, append(iad.flags(), "--xds-ca", mesh.planeCA)...); err == nil || !strings.Contains(err.Error(), "claims gateway/frankfurt/fra-1 and proves to be spiffe://iad-1.meridian/gateway") {
		t.Errorf("a gateway of iad-1 that claims to be one of fra-1: %v", err)
	}

	before := serials(t, gateway)
	next, nextPlane := newDomain(t, "fra-1.meridian"), newDomain(t, "plane.meridian")
	next.dir, nextPlane.dir = fra.dir, mesh.plane.dir
	replace(t, mesh.planeCA, nextPlane.ca.Bundle())
	next.issue(t, authority.Leaf{IDs: []string{"spiffe://fra-1.meridian/gateway"}})
	replace(t, filepath.Join(bundles, "fra-1.meridian.pem"), next.ca.Bundle())
	nextPlane.issue(t, hereOnly)
	until(t, "the gateway has taken up the new files", func() bool {
		now := serials(t, gateway)
		return len(now) == len(before) && !slices.ContainsFunc(now, func(serial string) bool { return slices.Contains(before, serial) })
	})
	first.end(t, syscall.SIGTERM)
	second := startServer(t, binary, append(args, "--xds-address", first.xds.String())...)
	until(t, "the gateway has joined again", func() bool { return second.joined(t) })
}

// A gateway without a certificate joins by the token of its pod's service account. When that is replaced, and the one before
// no longer good, it joins again.
func TestEnvoyJoinsByServiceAccount(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cluster, err := kube.Start(ctx, kube.Config{Name: "fra-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	mesh, dir, binary := secure(t), t.TempDir(), build(t)
	token := func(pod string) []byte {
		token, err := cluster.Token(ctx, kube.Account{Namespace: "mesh", Name: "gateway", Pod: pod, Audiences: []string{"meridian"}})
		if err != nil {
			t.Fatal(err)
		}
		return []byte(token)
	}
	kubeconfig, err := cluster.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	replace(t, filepath.Join(dir, "kubeconfig"), kubeconfig)
	old := token("gateway-0")
	replace(t, filepath.Join(dir, "token"), old)
	args := append(mesh.args, "--token-review-kubeconfig", "fra-1="+filepath.Join(dir, "kubeconfig"))
	first := startServer(t, binary, args...)
	until(t, "the control plane is ready", func() bool { return strings.HasPrefix(first.get(t, "/readyz"), "200 ") })
	if _, err := join(ctx, t, first, "--xds-ca", mesh.planeCA, "--token", filepath.Join(dir, "token"), "--secret-dir", dir); err != nil {
		t.Fatal(err)
	}
	until(t, "the gateway has its own configuration", func() bool { return first.joined(t) })

	replace(t, filepath.Join(dir, "token"), token("gateway-1"))
	client, err := kubernetes.NewForConfig(cluster.REST())
	if err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Pods("mesh").Delete(ctx, "gateway-0", meta.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	until(t, "the old token is no longer good", func() bool {
		review := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: string(old), Audiences: []string{"meridian"}}}
		answer, err := client.AuthenticationV1().TokenReviews().Create(ctx, review, meta.CreateOptions{})
		return err == nil && !answer.Status.Authenticated
	})
	first.end(t, syscall.SIGTERM)
	second := startServer(t, binary, append(args, "--xds-address", first.xds.String())...)
	until(t, "the gateway has joined again", func() bool { return second.joined(t) })
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}
