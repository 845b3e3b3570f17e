package world_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// counted says that fra-1 has 8 GPUs, of which some are free, and that so many more replicas of chat fit.
func counted(free, fit int64) world.AcceleratorsCounted {
	return world.AcceleratorsCounted{
		Cluster:      "fra-1",
		Accelerators: &world.Accelerators{Rows: []world.Accelerator{{Product: "h100", Total: 8, Used: 8 - free, Free: free}}},
		Pools:        []world.PoolReplicas{{Service: "chat", Holds: []world.Holding{{Product: "h100", Devices: 8 - free}}, Fit: fit}},
	}
}

func TestWhatIsCountedOfAClusterIsKnown(t *testing.T) {
	var w world.Writer
	pool := poolKey("chat@fra-1")
	w.Commit([]world.Fact{world.PoliciesLoaded{Set: readSet("1", "chat", false)}})
	if now := w.Current(); now.Accelerators("fra-1") != nil || now.Pool(pool).Replicas != nil || now.Pool(pool).Fit() != 0 {
		t.Error("something is known before anything was counted")
	}
	for _, step := range []struct {
		what string
		fact world.AcceleratorsCounted
		want world.Delta
	}{
		{"a first count", counted(4, 2), world.Delta{Accelerators: true, Pools: []world.PoolKey{pool}}},
		{"the same", counted(4, 2), world.Delta{}},
		{"as many fit", counted(5, 2), world.Delta{Accelerators: true}},
		{"more fit", counted(6, 3), world.Delta{Accelerators: true, Pools: []world.PoolKey{pool}}},
		{"a cluster that is not read", world.AcceleratorsCounted{Cluster: "iad-1", Accelerators: &world.Accelerators{}, Pools: []world.PoolReplicas{{Service: "chat", Fit: 1}}}, world.Delta{}},
		{"nobody's cluster", world.AcceleratorsCounted{Cluster: "mars-1", Accelerators: &world.Accelerators{}}, world.Delta{}},
	} {
		before := w.Current()
		now, delta := w.Commit([]world.Fact{step.fact})
		if diff := cmp.Diff(step.want, delta); diff != "" || (now == before) != step.want.Empty() {
			t.Errorf("%s: delta (-want +got):\n%s", step.what, diff)
		}
	}
	now := w.Current()
	if diff := cmp.Diff(counted(6, 3).Accelerators, now.Accelerators("fra-1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&counted(6, 3).Pools[0], now.Pool(pool).Replicas); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What was counted stays while the pool is read from the same object of a cluster that is counted.
func TestOtherPoliciesForgetWhatIsNotCountedAnyMore(t *testing.T) {
	uncounted := readSet("3", "chat", false)
	for i := range uncounted.Clusters {
		if k := uncounted.Clusters[i].Spec.Kubernetes; k != nil {
			k.Accelerators = &policies.Accelerators{Disabled: true}
		}
	}
	for name, c := range map[string]struct {
		set           *policies.Set
		cluster, pool bool
	}{
		"the same object": {readSet("2", "chat", true), true, true},
		"another object":  {readSet("2", "other", false), true, false},
		"not counted":     {uncounted, false, false},
	} {
		var w world.Writer
		w.Commit([]world.Fact{world.PoliciesLoaded{Set: readSet("1", "chat", false)}, found("chat@fra-1", nil), counted(4, 2)})
		now, _ := w.Commit([]world.Fact{world.PoliciesLoaded{Set: c.set}})
		if got := now.Accelerators("fra-1") != nil; got != c.cluster {
			t.Errorf("%s: the cluster's accelerators are known: %v", name, got)
		}
		if got := now.Pool(poolKey("chat@fra-1")).Replicas != nil; got != c.pool {
			t.Errorf("%s: what the pool holds is known: %v", name, got)
		}
	}
}

// Endpoints that come and go leave what was counted of the pool as it is.
func TestFoundEndpointsKeepWhatWasCounted(t *testing.T) {
	var w world.Writer
	w.Commit([]world.Fact{world.PoliciesLoaded{Set: readSet("1", "chat", false)}, counted(4, 2)})
	now, _ := w.Commit([]world.Fact{found("chat@fra-1", map[string]world.Condition{"10.0.0.1:80": world.Ready})})
	if p := now.Pool(poolKey("chat@fra-1")); p.Fit() != 2 || len(p.Endpoints) != 1 {
		t.Errorf("%+v", p)
	}
}
