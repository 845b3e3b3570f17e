package world_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

func TestRoundTripIsMeasuredOrEstimated(t *testing.T) {
	w := loaded(t)
	w.Commit([]world.Fact{world.PoliciesLoaded{Set: setOf("two", map[string]int{"chat@fra-1": 1, "chat@iad-1": 1, "chat@gru-1": 1})}})
	w.Commit([]world.Fact{world.RoundTripMeasured{From: "iad", To: "fra", RTT: 90 * time.Millisecond}})
	for _, c := range []struct {
		from, to     policies.RegionName
		rtt          time.Duration
		measured, ok bool
	}{
		{"fra", "iad", 90 * time.Millisecond, true, true},
		{"iad", "fra", 90 * time.Millisecond, true, true},
		{"fra", "fra", 0, false, true},
		{"fra", "mars", 0, false, false},
		{"mars", "fra", 0, false, false},
		{"mars", "mars", 0, false, false},
	} {
		rtt, measured, ok := w.Current().RoundTrip(c.from, c.to)
		if rtt != c.rtt || measured != c.measured || ok != c.ok {
			t.Errorf("%s to %s: %v, measured %t, ok %t", c.from, c.to, rtt, measured, ok)
		}
	}
	if rtt, measured, ok := w.Current().RoundTrip("fra", "gru"); rtt <= 0 || measured || !ok {
		t.Errorf("estimate fra to gru: %v, measured %t, ok %t", rtt, measured, ok)
	}
}

func TestPoolsOfAServiceAreFoundBySorting(t *testing.T) {
	w := loaded(t).Current()
	var got []string
	for _, p := range w.PoolsOf("chat") {
		got = append(got, p.Key.String())
	}
	if diff := cmp.Diff([]string{"chat@fra-1", "chat@iad-1"}, got); diff != "" {
		t.Errorf("pools of chat (-want +got):\n%s", diff)
	}
	if len(w.PoolsOf("ch")) != 0 || len(w.PoolsOf("zzz")) != 0 || w.Pool(poolKey("chat@gru-1")) != nil {
		t.Error("pools were found that no policy names")
	}
	if r, ok := w.RegionOf("iad-1"); r != "iad" || !ok {
		t.Errorf("iad-1 is in %q, %t", r, ok)
	}
	if _, ok := w.RegionOf("gru-1"); ok {
		t.Error("a region was found for a cluster that no policy names")
	}
}

func TestClassIDSaysItsRules(t *testing.T) {
	for _, c := range []struct {
		rules  []policies.ResidencyName
		want   world.ClassID
		pinned bool
	}{
		{nil, "any", false},
		{[]policies.ResidencyName{"eu"}, "eu", true},
		{[]policies.ResidencyName{"eu", "health"}, "eu+health", true},
	} {
		got := world.ClassOf(c.rules)
		if got != c.want || got.Pinned() != c.pinned {
			t.Errorf("class of %v is %q, pinned %t", c.rules, got, got.Pinned())
		}
		if diff := cmp.Diff(c.rules, got.Rules()); diff != "" {
			t.Errorf("rules of %q (-want +got):\n%s", got, diff)
		}
	}
}

func TestViewpointTextIsReadBack(t *testing.T) {
	for id, v := range map[world.ViewpointID]world.Viewpoint{
		"gateway/fra/fra-1":             {Role: policies.RoleGateway, Region: "fra", Cluster: "fra-1"},
		"gateway/fra/fra-1/envoy-1.36":  {Role: policies.RoleGateway, Region: "fra", Cluster: "fra-1", Dialect: world.DialectEnvoy136},
		"sidecar/fra/fra-1/grpc":        {Role: policies.RoleSidecar, Region: "fra", Cluster: "fra-1", Dialect: world.DialectGRPC},
		"gateway/fra/fra-1@acme+globex": {Role: policies.RoleGateway, Region: "fra", Cluster: "fra-1", Tenants: "acme+globex"},
		"gateway/fra/fra-1/grpc@a@b":    {Role: policies.RoleGateway, Region: "fra", Cluster: "fra-1", Dialect: world.DialectGRPC, Tenants: "a@b"},
	} {
		if got, err := world.ParseViewpoint(id); err != nil || got != v || v.ID() != id {
			t.Errorf("%q was read as %+v, which writes as %q: %v", id, got, v.ID(), err)
		}
	}
	for _, bad := range []world.ViewpointID{"", "gateway", "gateway/fra", "gateway/fra/", "/fra/fra-1", "gateway//fra-1", "a/b/c/d", "a/b/c/", "a/b/c/grpc/e",
		"gateway/fra/fra-1@", "gateway/fra/fra-1@b+a", "gateway/fra/fra-1@a+a", "gateway/fra/fra-1@a+", "gateway/fra/fra-1@a/b", "gateway/fra/fra-1@a%"} {
		if got, err := world.ParseViewpoint(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}
