package e2e

import (
	"testing"

	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
)

func TestNearestClusterServes(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three(), Policies: euPinned})
	for _, c := range m.Members() {
		a := send(t, chat(c, american))
		if a.status != 200 || a.cluster != c.Name || a.region != c.Region || a.reason != "nearest" {
			t.Errorf("at %s: %d by %s in %s because %s: %s", c.Name, a.status, a.cluster, a.region, a.reason, a.body)
		}
	}
	a := send(t, chat(m.Member("iad-1"), german))
	if a.status != 200 || a.cluster != "dub-1" {
		t.Errorf("a German at iad-1: %d by %s: %s", a.status, a.cluster, a.body)
	}
}
