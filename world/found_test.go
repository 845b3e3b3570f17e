package world_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// readSet has chat in fra-1 read from the object of a name, and in iad-1 with two listed endpoints.
func readSet(hash, object string, unreachable bool) *policies.Set {
	set := setOf(hash, map[string]int{"chat@iad-1": 2, "chat@fra-1": 0})
	for i := range set.Clusters {
		if set.Clusters[i].Metadata.Name == "fra-1" {
			set.Clusters[i].Spec.Kubernetes = &policies.Kubernetes{PodsUnreachable: unreachable}
		}
	}
	for i := range set.Services[0].Spec.Pools {
		if p := &set.Services[0].Spec.Pools[i]; p.Cluster == "fra-1" {
			p.From = &policies.PoolSource{Kind: policies.FromService, Namespace: "models", Name: object}
		}
	}
	return set
}

func found(pool string, endpoints map[string]world.Condition) world.PoolFound {
	f := world.PoolFound{Pool: poolKey(pool)}
	for address, c := range endpoints {
		f.Endpoints = append(f.Endpoints, world.FoundEndpoint{Address: netip.MustParseAddrPort(address), Condition: c})
	}
	return f
}

// addressesOf are a pool's addresses in order.
func addressesOf(p *world.Pool) []string {
	var all []string
	for _, e := range p.Endpoints {
		all = append(all, e.Address.String())
	}
	return all
}

func TestAPoolIsWhatItsClusterFinds(t *testing.T) {
	var w world.Writer
	now, _ := w.Commit([]world.Fact{world.PoliciesLoaded{Set: readSet("1", "chat", false)}})
	if p := now.Pool(poolKey("chat@fra-1")); p.Found || len(p.Endpoints) > 0 {
		t.Errorf("before the cluster was heard: %+v", p)
	}
	if p := now.Pool(poolKey("chat@iad-1")); !p.Found || len(p.Endpoints) != 2 {
		t.Errorf("a list in the policies: %+v", p)
	}

	now, delta := w.Commit([]world.Fact{found("chat@fra-1", map[string]world.Condition{"10.0.0.2:80": world.Ready, "10.0.0.1:80": world.Unready}), found("chat@iad-1", nil)})
	if diff := cmp.Diff(world.Delta{Pools: []world.PoolKey{poolKey("chat@fra-1")}, Members: true}, delta); diff != "" {
		t.Errorf("delta (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"10.0.0.1:80", "10.0.0.2:80"}, addressesOf(now.Pool(poolKey("chat@fra-1")))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p := now.Pool(poolKey("chat@iad-1")); len(p.Endpoints) != 2 {
		t.Errorf("a cluster emptied a list of the policies: %+v", p)
	}

	// What probes know of an endpoint stays, whatever else comes and goes.
	well := world.Health{Verdict: world.Healthy, At: start}
	w.Commit([]world.Fact{world.EndpointJudged{Endpoint: world.EndpointKey{Pool: poolKey("chat@fra-1"), Address: netip.MustParseAddrPort("10.0.0.2:80")}, Health: well}})
	now, delta = w.Commit([]world.Fact{found("chat@fra-1", map[string]world.Condition{"10.0.0.2:80": world.Terminating, "10.0.0.3:80": world.Ready})})
	if p := now.Pool(poolKey("chat@fra-1")); p.Endpoints[0].Health != well || p.Endpoints[0].Condition != world.Terminating || !delta.Members {
		t.Errorf("%+v, %+v", p, delta)
	}
	same := now.Pool(poolKey("chat@fra-1"))
	now, delta = w.Commit([]world.Fact{found("chat@fra-1", map[string]world.Condition{"10.0.0.3:80": world.Ready, "10.0.0.2:80": world.Terminating})})
	if now.Pool(poolKey("chat@fra-1")) != same || !delta.Empty() {
		t.Errorf("the same once more changed %+v", delta)
	}
	_, delta = w.Commit([]world.Fact{found("chat@fra-1", map[string]world.Condition{"10.0.0.3:80": world.Ready, "10.0.0.2:80": world.Unready})})
	if delta.Members || len(delta.Pools) != 1 {
		t.Errorf("another condition is no other member: %+v", delta)
	}

	// Other policies keep it while they read it from the same object.
	now, _ = w.Commit([]world.Fact{world.PoliciesLoaded{Set: readSet("2", "chat", true)}})
	if p := now.Pool(poolKey("chat@fra-1")); !p.Found || !p.Unprobed || len(p.Endpoints) != 2 {
		t.Errorf("after a reload: %+v", p)
	}
	now, _ = w.Commit([]world.Fact{world.PoliciesLoaded{Set: readSet("3", "other", true)}})
	if p := now.Pool(poolKey("chat@fra-1")); p.Found || len(p.Endpoints) > 0 {
		t.Errorf("the endpoints of another object: %+v", p)
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		condition world.Condition
		probed    world.Verdict
		unprobed  bool
		want      world.Verdict
	}{
		{world.Unsaid, world.Healthy, false, world.Healthy},
		{world.Unsaid, world.Unhealthy, false, world.Unhealthy},
		{world.Unsaid, world.Unknown, true, world.Unknown},
		{world.Ready, world.Healthy, false, world.Healthy},
		{world.Ready, world.Unhealthy, false, world.Unhealthy}, // a probe that fails counts
		{world.Ready, world.Unknown, true, world.Healthy},      // nobody can probe it
		{world.Unready, world.Healthy, false, world.Unhealthy},
		{world.Unready, world.Unknown, true, world.Unhealthy},
		{world.Terminating, world.Healthy, false, world.Unknown}, // used where nothing is better
		{world.Terminating, world.Unhealthy, false, world.Unhealthy},
		{world.Terminating, world.Unknown, true, world.Unknown},
	} {
		p := &world.Pool{Unprobed: c.unprobed, Endpoints: []world.Endpoint{{Condition: c.condition, Health: world.Health{Verdict: c.probed}}}}
		if got := p.VerdictOf(&p.Endpoints[0]); got != c.want {
			t.Errorf("condition %d, probed %d, unprobed %v: %d, want %d", c.condition, c.probed, c.unprobed, got, c.want)
		}
	}
}
