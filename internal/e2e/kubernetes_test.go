package e2e

import (
	"testing"

	"github.com/meridian-mesh/meridian/internal/testbed/kube"
	"github.com/meridian-mesh/meridian/internal/testbed/load"
	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
	"github.com/meridian-mesh/meridian/internal/testbed/modelserver"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// startKubernetes starts a mesh in which each cluster has an API server that lists its servers.
func startKubernetes(t *testing.T, config mesh.Config) *mesh.Mesh {
	t.Helper()
	if !isolated {
		t.Skip("SKIPPED: Kubernetes lists no loopback addresses, and others can't be had here")
	}
	config.Clusters, config.Kubernetes = three(), true
	return start(t, config)
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
	m := startKubernetes(t, mesh.Config{})
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
	m := startKubernetes(t, mesh.Config{})
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

// shareOf is the part of a cluster's own requests that a cluster gets, in hundredths.
func shareOf(t *testing.T, m *mesh.Mesh, from, to string) float64 {
	t.Helper()
	state := m.Plane().State()
	region, _ := state.World.RegionOf(policies.ClusterName(from))
	viewpoint := world.Viewpoint{Role: policies.RoleGateway, Region: region, Cluster: policies.ClusterName(from)}
	d, ok := state.Plan.Find(viewpoint.ID(), mesh.ServiceName, world.AnyClass)
	if !ok {
		t.Fatalf("nothing is planned for %s", from)
	}
	c, ok := d.Choice(policies.ClusterName(to))
	if !ok {
		t.Fatalf("%s has no pool", to)
	}
	return float64(c.Share) / 100
}

// Where every cluster has all that may be planned for, the rest goes where GPUs are free, until the nodes that have them are cordoned.
func TestWhatFitsNowhereGoesWhereGPUsAreFree(t *testing.T) {
	m := startKubernetes(t, mesh.Config{
		Service:  "{models: [llama], capacity: {slotsPerEndpoint: 10}}",
		Policies: "---\napiVersion: meridian.dev/v1alpha1\nkind: Traffic\nmetadata: {name: eager}\nspec: {services: [llama], spill: {targetUtilization: 30, maxShiftPerSecond: 100}}\n",
		Server:   modelserver.Config{OutputTokens: 25},
	})
	iad := m.Member("iad-1")
	until := func(what string, holds func(iad float64) bool) {
		t.Helper()
		if err := m.Until(t.Context(), what, func() bool { return holds(shareOf(t, m, "fra-1", "iad-1")) }); err != nil {
			t.Fatal(err)
		}
	}
	r := underLoad(t, m.Member("fra-1"), american, 150, func(observed <-chan load.Result) { // about 40 at a time, and 18 may be planned for
		until("all clusters have the same part", func(iad float64) bool { return iad >= 25 && iad <= 40 })
		if err := iad.SetNode(t.Context(), mesh.Node{Name: "spare", GPUs: 8}); err != nil {
			t.Fatal(err)
		}
		until("what does not fit goes where a node is free", func(iad float64) bool { return iad >= 45 })
		take(observed, 200)
		if err := iad.SetNode(t.Context(), mesh.Node{Name: "spare", GPUs: 8, Cordoned: true}); err != nil {
			t.Fatal(err)
		}
		until("the node is cordoned", func(iad float64) bool { return iad <= 40 })
	})
	wantNoneFailed(t, r)
}

// A cluster with 5,000 pods is listed anew, after its API server was killed, while pods of another come and go: nobody notices.
func TestACrowdedClusterIsListedWhileOthersGoOn(t *testing.T) {
	m := startKubernetes(t, mesh.Config{})
	fra, dub := m.Member("fra-1"), m.Member("dub-1")
	if err := dub.Kubernetes().MakePods(t.Context(), kube.Crowd{Namespace: "batch", Node: "crowded", Pods: 5000}); err != nil {
		t.Fatal(err)
	}
	r := underLoad(t, fra, american, 100, func(observed <-chan load.Result) {
		await(t, observed, "fra-1", 100)
		if err := dub.Kubernetes().Kill(); err != nil {
			t.Fatal(err)
		}
		awaitServers(t, m, "dub-1", world.Unsaid, world.Unsaid)
		if err := dub.Kubernetes().Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for _, step := range []struct {
				pod  mesh.Pod
				want world.Condition
			}{{mesh.PodUnready, world.Unready}, {mesh.PodReady, world.Ready}} {
				if err := fra.SetPod(t.Context(), 0, step.pod); err != nil {
					t.Fatal(err)
				}
				awaitServers(t, m, "fra-1", step.want, world.Ready)
			}
		}
		awaitServers(t, m, "dub-1", world.Ready, world.Ready)
		await(t, observed, "fra-1", 100)
	})
	wantNoneFailed(t, r)
}
