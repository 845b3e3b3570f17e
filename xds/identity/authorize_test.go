package identity_test

import (
	"strings"
	"testing"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/identity"
)

func TestBindingsSayWhoMayBeWhat(t *testing.T) {
	bound := clusterOf("fra-1", "frankfurt",
		policies.ProxyBinding{Role: policies.RoleGateway, SPIFFEIDs: []string{"spiffe://fra-1.meridian/gateway"}, ServiceAccounts: []string{"mesh/gateway"}},
		policies.ProxyBinding{Role: policies.RoleSidecar, SPIFFEIDs: []string{"spiffe://fra-1.meridian/ns/acme/*"}, ServiceAccounts: []string{"acme/chat"}, Tenants: []policies.Tenant{"acme", "globex"}},
		policies.ProxyBinding{Role: policies.RoleSidecar, SPIFFEIDs: []string{"spiffe://fra-1.meridian/ns/acme/admin"}, Tenants: []policies.Tenant{"hooli"}},
	)
	open := clusterOf("fra-1", "frankfurt")
	spiffe := func(id string) identity.Identity { return identity.Identity{SPIFFE: spiffeid.RequireFromString(id)} }
	account := func(cluster policies.ClusterName, namespace, name string) identity.Identity {
		return identity.Identity{Account: identity.Account{Cluster: cluster, Namespace: namespace, ServiceAccount: name, Pod: "p"}}
	}
	for name, c := range map[string]struct {
		cluster *policies.Cluster
		who     identity.Identity
		claimed string
		refused string
	}{
		"named":                                {bound, spiffe("spiffe://fra-1.meridian/gateway"), "gateway/frankfurt/fra-1", ""},
		"named, some tenants":                  {bound, spiffe("spiffe://fra-1.meridian/gateway"), "gateway/frankfurt/fra-1@acme", ""},
		"below what is named":                  {bound, spiffe("spiffe://fra-1.meridian/gateway/x"), "gateway/frankfurt/fra-1", "does not name it"},
		"named for another role":               {bound, spiffe("spiffe://fra-1.meridian/gateway"), "sidecar/frankfurt/fra-1", "does not name it for role sidecar"},
		"not named":                            {bound, spiffe("spiffe://fra-1.meridian/other"), "gateway/frankfurt/fra-1", "does not name it"},
		"below a pattern":                      {bound, spiffe("spiffe://fra-1.meridian/ns/acme/sa/chat"), "sidecar/frankfurt/fra-1@acme", ""},
		"below a pattern, all its tenants":     {bound, spiffe("spiffe://fra-1.meridian/ns/acme/sa/chat"), "sidecar/frankfurt/fra-1@acme+globex", ""},
		"below a pattern, a further tenant":    {bound, spiffe("spiffe://fra-1.meridian/ns/acme/sa/chat"), "sidecar/frankfurt/fra-1@acme+hooli", "some tenants only"},
		"below a pattern, all tenants":         {bound, spiffe("spiffe://fra-1.meridian/ns/acme/sa/chat"), "sidecar/frankfurt/fra-1", "some tenants only"},
		"the pattern's own folder":             {bound, spiffe("spiffe://fra-1.meridian/ns/acme"), "sidecar/frankfurt/fra-1@acme", "does not name it"},
		"beside a pattern":                     {bound, spiffe("spiffe://fra-1.meridian/ns/acme2/x"), "sidecar/frankfurt/fra-1@acme", "does not name it"},
		"by the other of two bindings":         {bound, spiffe("spiffe://fra-1.meridian/ns/acme/admin"), "sidecar/frankfurt/fra-1@hooli", ""},
		"by neither of two bindings alone":     {bound, spiffe("spiffe://fra-1.meridian/ns/acme/admin"), "sidecar/frankfurt/fra-1@acme+hooli", "some tenants only"},
		"the same path in another domain":      {bound, spiffe("spiffe://iad-1.meridian/gateway"), "gateway/frankfurt/fra-1", "the trust domain of cluster fra-1 is fra-1.meridian"},
		"an account that is named":             {bound, account("fra-1", "mesh", "gateway"), "gateway/frankfurt/fra-1", ""},
		"an account that is not":               {bound, account("fra-1", "mesh", "other"), "gateway/frankfurt/fra-1", "does not name it"},
		"an account named for another role":    {bound, account("fra-1", "mesh", "gateway"), "sidecar/frankfurt/fra-1", "for role sidecar"},
		"an account that another vouches for":  {bound, account("iad-1", "mesh", "gateway"), "gateway/frankfurt/fra-1", "nothing that cluster fra-1 vouches for"},
		"an account with one of its tenants":   {bound, account("fra-1", "acme", "chat"), "sidecar/frankfurt/fra-1@globex", ""},
		"anybody, where nobody is named":       {open, spiffe("spiffe://fra-1.meridian/whatever"), "sidecar/frankfurt/fra-1", ""},
		"of elsewhere, where nobody is named":  {open, spiffe("spiffe://iad-1.meridian/whatever"), "sidecar/frankfurt/fra-1", "trust domain"},
		"an account, where nobody is named":    {open, account("fra-1", "mesh", "gateway"), "gateway/frankfurt/fra-1", "names no service accounts"},
		"nobody":                               {open, identity.Identity{}, "gateway/frankfurt/fra-1", "nothing that cluster fra-1 vouches for"},
		"another region":                       {open, spiffe("spiffe://fra-1.meridian/gateway"), "gateway/virginia/fra-1", "is in region frankfurt"},
		"the viewpoint of another cluster":     {open, spiffe("spiffe://fra-1.meridian/gateway"), "gateway/frankfurt/fra-2", "is in region frankfurt"},
		"named, in another way of saying it":   {bound, spiffe("spiffe://fra-1.meridian/gateway"), "gateway/frankfurt/fra-1/grpc", ""},
		"the dialect does not widen a binding": {bound, spiffe("spiffe://fra-1.meridian/other"), "gateway/frankfurt/fra-1/grpc", "does not name it"},
	} {
		t.Run(name, func(t *testing.T) {
			viewpoint, err := world.ParseViewpoint(world.ViewpointID(c.claimed))
			if err != nil {
				t.Fatal(err)
			}
			err = identity.Authorize(c.cluster, c.who, viewpoint)
			switch {
			case (err == nil) != (c.refused == ""):
				t.Errorf("%v, want %q", err, c.refused)
			case err != nil && (!strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), c.claimed) || !strings.Contains(err.Error(), c.who.Name())):
				t.Errorf("%q should say what is claimed, what is proved, and %q", err, c.refused)
			}
		})
	}
}

// Whatever ID a certificate has and whatever a policy binds, who is let in is in the cluster's trust domain, and is the one
// named or stands below it in whole segments.
func FuzzBindings(f *testing.F) {
	for _, id := range []string{"spiffe://fra-1.meridian/gateway", "spiffe://fra-1.meridian/ns/a/sa/b", "spiffe://iad-1.meridian/ns/a", "spiffe://fra-1.meridian"} {
		for _, pattern := range []string{"spiffe://fra-1.meridian/*", "spiffe://fra-1.meridian/ns/*", "spiffe://fra-1.meridian/gateway", "spiffe://iad-1.meridian/*", "*", "", "spiffe://fra-1.meridian/ns/a*"} {
			f.Add(id, pattern)
		}
	}
	claimed := world.Viewpoint{Role: policies.RoleGateway, Region: "frankfurt", Cluster: "fra-1"}
	f.Fuzz(func(t *testing.T, text, pattern string) {
		id, err := spiffeid.FromString(text)
		if err != nil {
			t.Skip()
		}
		cluster := clusterOf("fra-1", "frankfurt", policies.ProxyBinding{Role: policies.RoleGateway, SPIFFEIDs: []string{pattern}})
		if identity.Authorize(cluster, identity.Identity{SPIFFE: id}, claimed) != nil {
			return
		}
		above, wild := strings.CutSuffix(pattern, "/*")
		below := strings.TrimPrefix(text, above)
		if id.TrustDomain().Name() != "fra-1.meridian" || text != pattern && (!wild || below == text || below[0] != '/') {
			t.Errorf("%q is let in by %q", text, pattern)
		}
	})
}
