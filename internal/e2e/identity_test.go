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

	"github.com/meridian-mesh/meridian/internal/testbed/authority"
	"github.com/meridian-mesh/meridian/internal/testbed/envoy"
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
spec: {region: frankfurt, proxies: [{role: gateway, spiffeIDs: [spiffe://fra-1.meridian/gateway]}]}
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

// join starts an Envoy as a gateway of a cluster over mutual TLS, from what `meridian bootstrap` prints.
func (d domain) join(ctx context.Context, t *testing.T, s *server, cluster string, caFile string) (*envoy.Process, error) {
	t.Helper()
	admin, err := loopback.Free(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	bootstrap, err := exec.CommandContext(t.Context(), s.binary, "bootstrap", "--cluster", cluster, "--id", cluster+"-gateway", "--server", s.xds.String(), "--admin", admin.String(),
		"--xds-ca", caFile, "--cert", filepath.Join(d.dir, "tls.crt"), "--key", filepath.Join(d.dir, "tls.key"), "--secret-dir", d.dir).Output()
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

// A gateway joins over mutual TLS and gets its own configuration; with the certificate of another cluster it gets none; and
// when its CA, its certificate, and the control plane's have all been replaced it joins again.
func TestEnvoyJoinsOverMutualTLS(t *testing.T) {
	fra, iad, plane, binary := newDomain(t, "fra-1.meridian"), newDomain(t, "iad-1.meridian"), newDomain(t, "plane.meridian"), build(t)
	listen, err := loopback.Free(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	policyDir, bundles, planeCA := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "ca.pem")
	replace(t, filepath.Join(policyDir, "mesh.yaml"), fmt.Appendf(nil, oneEach, listen.Port()))
	here := authority.Leaf{Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}
	plane.issue(t, here)
	replace(t, planeCA, plane.ca.Bundle())
	for name, d := range map[string]domain{"fra-1.meridian": fra, "iad-1.meridian": iad} {
		d.issue(t, authority.Leaf{IDs: []string{"spiffe://" + name + "/gateway"}})
		replace(t, filepath.Join(bundles, name+".pem"), d.ca.Bundle())
	}
	args := []string{"--policies", policyDir, "--tls-cert", filepath.Join(plane.dir, "tls.crt"), "--tls-key", filepath.Join(plane.dir, "tls.key"), "--client-ca-dir", bundles}
	first := startServer(t, binary, args...)
	until(t, "the control plane is ready", func() bool { return strings.HasPrefix(first.get(t, "/readyz"), "200 ") })

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	gateway, err := fra.join(ctx, t, first, "fra-1", planeCA)
	if err != nil {
		t.Fatal(err)
	}
	synced := func(s *server) bool {
		proxies := s.status(t).Proxies
		return len(proxies) == 1 && proxies[0].State == serve.Synced && proxies[0].Viewpoint == "gateway/frankfurt/fra-1"
	}
	until(t, "the gateway has its own configuration", func() bool { return synced(first) })

	brief, cancelBrief := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancelBrief()
	if _, err := iad.join(brief, t, first, "fra-1", planeCA); err == nil || !strings.Contains(err.Error(), "claims gateway/frankfurt/fra-1 and proves to be spiffe://iad-1.meridian/gateway") {
		t.Errorf("a gateway of iad-1 that claims to be one of fra-1: %v", err)
	}

	before := serials(t, gateway)
	next, nextPlane := newDomain(t, "fra-1.meridian"), newDomain(t, "plane.meridian")
	next.dir, nextPlane.dir = fra.dir, plane.dir
	replace(t, planeCA, nextPlane.ca.Bundle())
	next.issue(t, authority.Leaf{IDs: []string{"spiffe://fra-1.meridian/gateway"}})
	replace(t, filepath.Join(bundles, "fra-1.meridian.pem"), next.ca.Bundle())
	nextPlane.issue(t, here)
	until(t, "the gateway has taken up the new files", func() bool {
		now := serials(t, gateway)
		return len(now) == len(before) && !slices.ContainsFunc(now, func(serial string) bool { return slices.Contains(before, serial) })
	})
	first.end(t, syscall.SIGTERM)
	second := startServer(t, binary, append(args, "--xds-address", first.xds.String())...)
	until(t, "the gateway has joined again", func() bool { return synced(second) })
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
