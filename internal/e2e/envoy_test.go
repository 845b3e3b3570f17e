package e2e

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
	"github.com/meridian-mesh/meridian/internal/testbed/modelserver"
)

// Without the control plane Envoy still sees for itself: its health checks leave a server that says it is unwell, its
// outlier detection one that keeps failing, and when all are unwell it asks none of them.
func TestEnvoyLeavesBadServersByItself(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three()[:1]})
	m.StopPlane()
	at := m.Member("fra-1")
	good, bad := at.Servers()[0], at.Servers()[1]
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	stat := func(name string) int64 {
		stats, err := at.Gateway().Stats(ctx, "^cluster[.]pool/llama/fra-1[.]"+name+"$")
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range stats {
			return v
		}
		return 0
	}
	set := func(s *modelserver.Server, f modelserver.Fault) {
		if err := s.SetFault(f); err != nil {
			t.Fatal(err)
		}
	}
	healthy := func(n int64) func() bool { return func() bool { return stat("membership_healthy") == n } }

	set(bad, modelserver.Fault{Unhealthy: true})
	if err := m.Until(ctx, "the unwell server is left", healthy(1)); err != nil {
		t.Fatal(err)
	}
	before := bad.Served()
	for range 20 {
		if a := send(t, chat(at, american)); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if bad.Served() != before {
		t.Error("a server that says it is unwell was asked")
	}

	set(bad, modelserver.Fault{})
	if err := m.Until(ctx, "it is back", healthy(2)); err != nil {
		t.Fatal(err)
	}
	set(bad, modelserver.Fault{Status: 503})
	err := m.Until(ctx, "the failing server is ejected", func() bool {
		if a := send(t, chat(at, american)); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
		return stat("outlier_detection[.]ejections_enforced_total") > 0
	})
	if err != nil {
		t.Fatal(err)
	}

	set(bad, modelserver.Fault{Unhealthy: true})
	set(good, modelserver.Fault{Unhealthy: true})
	if err := m.Until(ctx, "all are left", healthy(0)); err != nil {
		t.Fatal(err)
	}
	before = good.Served() + bad.Served()
	if a := send(t, chat(at, american)); a.status != 503 || a.code(t) != "no_healthy_cluster" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if good.Served()+bad.Served() != before {
		t.Error("in need Envoy asked an unwell server: panic is not off")
	}
}

func TestTenantIsPinned(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three(), Gateway: "tenantHeader: x-tenant", Policies: `---
apiVersion: meridian.dev/v1alpha1
kind: Residency
metadata: {name: acme-contract}
spec: {match: {tenants: [acme]}, within: [DE]}
`})
	for tenant, want := range map[string]string{"acme": "fra-1", "globex": "iad-1", "": "iad-1"} {
		r := chat(m.Member("iad-1"), american)
		if tenant != "" {
			r.header = map[string]string{"x-tenant": tenant}
		}
		if a := send(t, r); a.status != 200 || a.cluster != want {
			t.Errorf("tenant %q: %d by %q, want %s: %s", tenant, a.status, a.cluster, want, a.body)
		}
	}
}

// The certificate comes over SDS as the name of a file on the proxy's disk.
func TestClientsAreServedOverTLS(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three()[:1], TLS: true})
	secure := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // the gateway's name is a SPIFFE identity
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+m.Member("fra-1").HTTP.String()+"/v1/completions", strings.NewReader(`{"model":"llama","prompt":"hi"}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("content-type", "application/json")
	response, err := secure.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 200 || response.TLS == nil || response.TLS.PeerCertificates[0].URIs[0].String() != "spiffe://fra-1.meridian/gateway" {
		t.Errorf("%s, %v", response.Status, response.TLS)
	}
}
