package e2e

import (
	"testing"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/load"
	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
	"github.com/meridian-mesh/meridian/internal/testbed/modelserver"
)

// A cluster under maintenance is emptied at its pace, down to nothing, and no caller notices.
func TestAClusterIsEmptiedAtItsPace(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three()})
	fra := m.Member("fra-1")
	r := underLoad(t, fra, american, 200, func(observed <-chan load.Result) {
		await(t, observed, "fra-1", 100)
		began := time.Now()
		if err := fra.Drain(5 * time.Second); err != nil {
			t.Fatal(err)
		}
		for _, below := range []float64{80, 50, 20, 0} {
			var share float64
			if err := m.Until(t.Context(), "fra-1 is being emptied", func() bool { share = shareOf(t, m, "fra-1", "fra-1"); return share <= below }); err != nil {
				t.Fatal(err)
			}
			if most := 100 - 100*time.Since(began).Seconds()/5; share < most-25 {
				t.Errorf("after %v fra-1 has %v %% of its requests: too fast", time.Since(began), share)
			}
		}
		await(t, observed, "dub-1", 200)
	})
	wantNoneFailed(t, r)
	if r.Answered("fra-1") == 0 || r.Answered("dub-1") == 0 {
		t.Errorf("answered by fra-1: %d, by dub-1: %d", r.Answered("fra-1"), r.Answered("dub-1"))
	}
}

// A cluster that is taken out of the policies gets no new requests, and those that it has may end, however long they take. Then it is gone.
func TestARemovedClusterIsDrainedFirst(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three(), Policies: euPinned, Server: modelserver.Config{OutputTokens: 150, TimePerOutputToken: 20 * time.Millisecond}})
	dub := m.Member("dub-1")
	r := underLoad(t, m.Member("iad-1"), german, 10, func(observed <-chan load.Result) { // 30 at a time
		await(t, observed, "dub-1", 20)
		if err := dub.Remove(); err != nil {
			t.Fatal(err)
		}
		retiring := func() bool { return len(m.Plane().Status().Retiring) == 1 }
		if err := m.Until(t.Context(), "dub-1 retires", retiring); err != nil {
			t.Fatal(err)
		}
		await(t, observed, "fra-1", 20)
		if err := m.Until(t.Context(), "dub-1 is gone", func() bool {
			_, ok := m.Plane().State().World.Policies().Cluster("dub-1")
			return !ok && !retiring()
		}); err != nil {
			t.Fatal(err)
		}
		await(t, observed, "fra-1", 20)
	})
	wantNoneFailed(t, r)
}
