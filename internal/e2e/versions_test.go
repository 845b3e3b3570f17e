package e2e

import (
	"testing"

	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
	"github.com/meridian-mesh/meridian/xds/serve"
)

// Envoys of three ages in one mesh each accept what they are given, locate clients, choose by the model in the body, and send
// requests to each other.
func TestEnvoysOfAllAgesServeTogether(t *testing.T) {
	clusters := three()
	versions := map[string]string{"fra-1": "1.40.0", "dub-1": "1.38.3", "iad-1": "1.36.4"}
	for i := range clusters {
		clusters[i].Envoy = versions[clusters[i].Name]
	}
	m := start(t, mesh.Config{Clusters: clusters, Policies: euPinned})
	for _, c := range m.Members() {
		if a := send(t, chat(c, american)); a.status != 200 || a.cluster != c.Name || a.reason != "nearest" {
			t.Errorf("an American at %s (Envoy %s): %d by %s because %s: %s", c.Name, c.Envoy, a.status, a.cluster, a.reason, a.body)
		}
		want := c.Name
		if c.Name == "iad-1" {
			want = "dub-1"
		}
		if a := send(t, chat(c, german)); a.status != 200 || a.cluster != want {
			t.Errorf("a German at %s (Envoy %s): %d by %s, want %s: %s", c.Name, c.Envoy, a.status, a.cluster, want, a.body)
		}
		if a := send(t, chat(c, unknown)); a.status != 403 || a.code(t) != "unknown_location" {
			t.Errorf("an unknown client at %s (Envoy %s): %d %s", c.Name, c.Envoy, a.status, a.body)
		}
		if rejected, err := c.Gateway().Rejected(t.Context()); err != nil || len(rejected) > 0 {
			t.Errorf("Envoy %s has rejected configuration: %v, %v", c.Envoy, rejected, err)
		}
	}
	for _, p := range m.Plane().Proxies() {
		if p.State != serve.Synced {
			t.Errorf("%s (%s) is %s: %+v", p.Node, p.Version, p.State, p.Types)
		}
	}
}
