package e2e

import (
	"testing"

	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
	"github.com/meridian-mesh/meridian/world"
)

// What model servers say of their load in responses comes back to the world with Envoy's load reports, also from another cluster.
func TestServersSayHowLoadedTheyAre(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three(), Policies: euPinned})
	err := m.Until(t.Context(), "the servers of dub-1 have said how loaded they are", func() bool {
		r := chat(m.Member("iad-1"), german)
		r.header = map[string]string{"endpoint-load-metrics-format": "JSON"}
		if a := send(t, r); a.status != 200 || a.cluster != "dub-1" {
			t.Fatalf("%d by %s: %s", a.status, a.cluster, a.body)
		}
		said := m.Plane().State().World.Pool(world.PoolKey{Service: mesh.ServiceName, Cluster: "dub-1"}).Said
		_, cache := said.KVCacheUse.Value()
		_, waiting := said.Waiting.Value()
		return cache && waiting && !said.At.IsZero()
	})
	if err != nil {
		t.Fatal(err)
	}
}
