package e2e

import (
	"testing"

	"github.com/meridian-mesh/meridian/internal/testbed/load"
	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// startKubernetes starts a mesh in which each cluster has an API server that lists its servers.
func startKubernetes(t *testing.T) *mesh.Mesh {
	t.Helper()
	if !isolated {
		t.Skip("SKIPPED: Kubernetes lists no loopback addresses, and others can't be had here")
	}
	return start(t, mesh.Config{Clusters: three(), Kubernetes: true})
}

// awaitServers waits until a cluster's pool has servers in such conditions, in the order of their addresses.
func awaitServers(t *testing.T, m *mesh.Mesh, cluster string, want ...world.Condition) {
	t.Helper()
	err := m.Until(t.Context(), "the pool of "+cluster+" is as its cluster says", func() bool {
		p := m.Plane().State().World.Pool(world.PoolKey{Service: mesh.ServiceName, Cluster: policies.ClusterName(cluster)})
		if len(p.Endpoints) != len(want) {
			return false
		}
		for i, c := range want {
			if p.Endpoints[i].Condition != c {
				return false
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
}

// take reads results until there were so many.
func take(observed <-chan load.Result, n int) (last load.Result) {
	for range n {
		last = <-observed
	}
	return last
}

// A pod that turns unready, terminates, is deleted or added costs no request, and all of a cluster's pods going sends its traffic to
// the next nearest.
func TestPodsComeAndGoWithoutAFailedRequest(t *testing.T) {
	m := startKubernetes(t)
	fra := m.Member("fra-1")
	r := underLoad(t, fra, american, 200, func(observed <-chan load.Result) {
		await(t, observed, "fra-1", 100)
		for _, step := range []struct {
			first mesh.Pod
			want  []world.Condition
		}{
			{mesh.PodUnready, []world.Condition{world.Unready, world.Ready}},
			{mesh.PodReady, []world.Condition{world.Ready, world.Ready}},
			{mesh.PodTerminating, []world.Condition{world.Terminating, world.Ready}},
			{mesh.PodGone, []world.Condition{world.Ready}},
		} {
			if err := fra.SetPod(t.Context(), 0, step.first); err != nil {
				t.Fatal(err)
			}
			awaitServers(t, m, "fra-1", step.want...)
			await(t, observed, "fra-1", 100)
		}
		served := fra.Servers()[0].Served()
		take(observed, 100)
		if more := fra.Servers()[0].Served(); more != served {
			t.Errorf("a pod that is gone got %d more requests", more-served)
		}
		if err := fra.AddServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		awaitServers(t, m, "fra-1", world.Ready, world.Ready)
		await(t, observed, "fra-1", 200)
		if fra.Servers()[2].Served() == 0 {
			t.Error("the pod that was added got no request")
		}
		for i := range 3 {
			if err := fra.SetPod(t.Context(), i, mesh.PodUnready); err != nil {
				t.Fatal(err)
			}
		}
		await(t, observed, "dub-1", 200)
	})
	wantNoneFailed(t, r)
}

// Every API server is killed, and requests go on. What changes while one is away is known once it is back.
func TestAPIServersMayAllDie(t *testing.T) {
	m := startKubernetes(t)
	fra := m.Member("fra-1")
	r := underLoad(t, fra, american, 200, func(observed <-chan load.Result) {
		await(t, observed, "fra-1", 100)
		for _, c := range m.Members() {
			if err := c.Kubernetes().Kill(); err != nil {
				t.Fatal(err)
			}
		}
		awaitServers(t, m, "fra-1", world.Unsaid, world.Unsaid) // its word does not count any more
		await(t, observed, "fra-1", 100)
		if err := fra.KillServers(); err != nil { // nobody tells, and it is seen all the same
			t.Fatal(err)
		}
		await(t, observed, "dub-1", 100)
		if err := fra.ReviveServers(); err != nil {
			t.Fatal(err)
		}
		await(t, observed, "fra-1", 100)
		if err := fra.Kubernetes().Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := fra.SetPod(t.Context(), 1, mesh.PodGone); err != nil {
			t.Fatal(err)
		}
		awaitServers(t, m, "fra-1", world.Ready)
		await(t, observed, "fra-1", 100)
	})
	wantNoneFailed(t, r)
}
