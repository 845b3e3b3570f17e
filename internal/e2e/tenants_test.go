package e2e

import (
	"testing"

	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
)

// A gateway that may serve some tenants serves them, and nobody else.
func TestGatewayOfSomeTenantsRefusesOthers(t *testing.T) {
	clusters := three()
	clusters[0].Tenants = "acme+globex"
	m := start(t, mesh.Config{Clusters: clusters, Gateway: "tenantHeader: x-tenant", Policies: euPinned})
	for tenant, want := range map[string]int{"acme": 200, "globex": 200, "initech": 403, "acme,globex": 403, "": 403} {
		r := chat(m.Member("fra-1"), german)
		if tenant != "" {
			r.header = map[string]string{"x-tenant": tenant}
		}
		a := send(t, r)
		if a.status != want || want == 403 && a.code(t) != "tenant_not_served" {
			t.Errorf("tenant %q: %d %s, want %d", tenant, a.status, a.body, want)
		}
	}
	if a := send(t, chat(m.Member("dub-1"), german)); a.status != 200 {
		t.Errorf("at a gateway for all: %d %s", a.status, a.body)
	}
}
