package world_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Whatever tenants are called and in whatever order, the same ones give the same viewpoint, and its text names them.
func TestTenantsAreReadBackFromAViewpointsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab@,%+/2B5F ]{1,6}`), 0, 5, rapid.ID).Draw(t, "tenants")
		names := make([]policies.Tenant, len(drawn))
		for i, name := range drawn {
			names[i] = policies.Tenant(name)
		}
		tenants, err := world.MakeTenants(names)
		if err != nil {
			t.Fatal(err)
		}
		if shuffled, err := world.MakeTenants(rapid.Permutation(names).Draw(t, "shuffled")); err != nil || shuffled != tenants {
			t.Errorf("%q in another order is %q: %v", tenants, shuffled, err)
		}
		v := world.Viewpoint{Role: policies.RoleGateway, Region: "fra", Cluster: "fra-1", Tenants: tenants}
		if got, err := world.ParseViewpoint(v.ID()); err != nil || got != v {
			t.Errorf("%q was read as %+v: %v", v.ID(), got, err)
		}
		listed := tenants.List()
		slices.Sort(listed)
		slices.Sort(names)
		if !slices.Equal(listed, names) {
			t.Errorf("%q names %q, not %q", tenants, listed, names)
		}
	})
}

func TestTenantsAreBounded(t *testing.T) {
	for name, tenants := range map[string][]policies.Tenant{
		"an empty name": {"acme", ""}, "a long name": {policies.Tenant(strings.Repeat("a", world.MostTenantBytes+1))}, "too many": make([]policies.Tenant, world.MostTenants+1),
	} {
		if got, err := world.MakeTenants(tenants); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Whatever text is read as a viewpoint is the text that the viewpoint writes.
func FuzzParseViewpoint(f *testing.F) {
	for _, id := range []string{"gateway/fra/fra-1", "sidecar/fra/fra-1/grpc@acme+globex", "gateway/fra/fra-1@a%2Bb", "a/b/c@", "@", "//", "a/b/c@a@b", "a/b/c@%2f"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := world.ParseViewpoint(world.ViewpointID(text))
		if err == nil && string(v.ID()) != text {
			t.Errorf("%q was read as %+v, which writes as %q", text, v, v.ID())
		}
	})
}
