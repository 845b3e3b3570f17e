package kube

import (
	"fmt"
	"testing"

	testkube "github.com/meridian-mesh/meridian/internal/testbed/kube"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// A cluster whose 5,000 pods are listed, and listed anew after its API server was killed, holds no other up, and is counted in full.
func TestACrowdedClusterHoldsNobodyUp(t *testing.T) {
	crowded, well := startCluster(t, "fra-1"), startCluster(t, "iad-1")
	if err := crowded.MakePods(t.Context(), testkube.Crowd{Namespace: "batch", Node: "a", Pods: 5000, GPUs: 1}); err != nil {
		t.Fatal(err)
	}
	crowded.applyNodes(gpuNode("a", ""))
	crowded.apply(behind("one"))
	w, f := watchingAs(t, Config{Counted: func(world.AcceleratorsCounted) {}}, serving(fromService, crowded, well))
	others := func(round int) {
		for i := range 10 {
			address := fmt.Sprintf("10.1.%d.%d", round, i+1)
			well.apply(sliceOfLlama("a", address))
			f.until(t, poolIn("iad-1"), map[string]world.Condition{address + ":8000": world.Ready})
		}
	}
	others(1)
	f.until(t, poolIn("fra-1"), map[string]world.Condition{"10.0.0.1:8000": world.Ready})
	if err := crowded.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the crowded cluster is missed", func() bool { return len(w.Status()[0].Problems) > 0 })
	others(2)
	if err := crowded.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	others(3)
	eventually(t, "the crowded cluster is read again", func() bool { return len(w.Status()[0].Problems) == 0 })
	eventually(t, "all its pods are known", func() bool { return heldBy(w, "fra-1") == 5000 })
}

// heldBy is how many pods with accelerators a Watcher knows in a cluster.
func heldBy(w *Watcher, cluster policies.ClusterName) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.members[cluster].census
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.kept["pods"])
}
