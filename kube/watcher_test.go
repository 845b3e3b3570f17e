package kube

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	testkube "github.com/meridian-mesh/meridian/internal/testbed/kube"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a real API server, and where the kubeconfig for it is.
type cluster struct {
	*testkube.Server
	t          *testing.T
	kubeconfig string
}

// startCluster runs an API server with a namespace for models.
func startCluster(t *testing.T, name string) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := testkube.Start(ctx, testkube.Config{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{s, t, filepath.Join(t.TempDir(), name)}
	config, err := s.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	c.writeKubeconfig(config)
	c.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: models}\n")
	return c
}

func (c *cluster) writeKubeconfig(content []byte) {
	c.t.Helper()
	if err := os.WriteFile(c.kubeconfig+".new", content, 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(c.kubeconfig+".new", c.kubeconfig); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) apply(manifests string) {
	c.t.Helper()
	if err := c.Apply(c.t.Context(), []byte(manifests)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) remove(manifests string) {
	c.t.Helper()
	if err := c.Delete(c.t.Context(), []byte(manifests)); err != nil {
		c.t.Fatal(err)
	}
}

// sliceOfLlama is an EndpointSlice of Service models/llama with endpoints such as "10.0.0.1 ready: true".
func sliceOfLlama(name string, endpoints ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {namespace: models, name: %s, labels: {kubernetes.io/service-name: llama}}\n", name)
	fmt.Fprint(&b, "addressType: IPv4\nports: [{name: http, port: 8000}]\nendpoints:\n")
	for _, e := range endpoints {
		address, conditions, _ := strings.Cut(e, " ")
		fmt.Fprintf(&b, "- {addresses: [%s], conditions: {%s}}\n", address, conditions)
	}
	return b.String()
}

// told is what a Watcher has said of pools.
type told struct {
	mu      sync.Mutex
	pools   map[world.PoolKey]world.PoolFound // under mu
	changed chan struct{}
}

func (f *told) take(p world.PoolFound) {
	f.mu.Lock()
	f.pools[p.Pool] = p
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// now are the endpoints of a pool, and whether anything was said of it.
func (f *told) now(pool world.PoolKey) (map[string]world.Condition, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.pools[pool]
	return listed(p.Endpoints), ok
}

// until waits until a pool has these endpoints.
func (f *told) until(t *testing.T, pool world.PoolKey, want map[string]world.Condition) {
	t.Helper()
	for deadline := time.After(60 * time.Second); ; {
		got, ok := f.now(pool)
		if ok && maps.Equal(got, want) {
			return
		}
		select {
		case <-f.changed:
		case <-deadline:
			t.Fatalf("%s (-want +got):\n%s", pool, gocmp.Diff(want, got))
		}
	}
}

// watching runs a Watcher over policies until the test ends.
func watching(t *testing.T, set *policies.Set) (*Watcher, *told) {
	t.Helper()
	return watchingAs(t, Config{}, set)
}

// watchingAs does so with a configuration, which this completes.
func watchingAs(t *testing.T, config Config, set *policies.Set) (*Watcher, *told) {
	t.Helper()
	f := &told{pools: map[world.PoolKey]world.PoolFound{}, changed: make(chan struct{}, 1)}
	config.Found, config.Log = f.take, slog.New(slog.DiscardHandler)
	config.Heartbeat, config.Reread = 50*time.Millisecond, 100*time.Millisecond
	config.Patience = cmp.Or(config.Patience, time.Second)
	w, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	w.Update(set)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w, f
}

// serving are policies of a service llama that is read from some clusters.
func serving(from policies.PoolSource, clusters ...*cluster) *policies.Set {
	set := &policies.Set{}
	s := policies.Service{Metadata: policies.Metadata[policies.ServiceName]{Name: "llama"}}
	for _, c := range clusters {
		name := policies.ClusterName(filepath.Base(c.kubeconfig))
		set.Clusters = append(set.Clusters, policies.Cluster{
			Metadata: policies.Metadata[policies.ClusterName]{Name: name},
			Spec:     policies.ClusterSpec{Kubernetes: &policies.Kubernetes{Kubeconfig: c.kubeconfig, StaleAfter: policies.Duration(time.Second)}},
		})
		s.Spec.Pools = append(s.Spec.Pools, policies.Pool{Cluster: name, From: &from})
	}
	set.Services = []policies.Service{s}
	return set
}

// fromService reads Service models/llama.
var fromService = policies.PoolSource{Kind: policies.FromService, Namespace: "models", Name: "llama"}

func poolIn(c string) world.PoolKey {
	return world.PoolKey{Service: "llama", Cluster: policies.ClusterName(c)}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(60 * time.Second); !holds(); {
		select {
		case <-deadline:
			t.Fatal("not in a minute: " + what)
		case <-tick.C:
		}
	}
}

// A pool follows its Service: what is added, what is not ready, what terminates and what is gone.
func TestAPoolFollowsItsService(t *testing.T) {
	c := startCluster(t, "fra-1")
	_, f := watching(t, serving(fromService, c))
	pool := poolIn("fra-1")
	f.until(t, pool, map[string]world.Condition{})
	for _, step := range []struct {
		slice string
		want  map[string]world.Condition
	}{
		{sliceOfLlama("a", "10.0.0.1 ready: true"), map[string]world.Condition{"10.0.0.1:8000": world.Ready}},
		{sliceOfLlama("b", "10.0.0.2", "10.0.0.3"), map[string]world.Condition{"10.0.0.1:8000": world.Ready, "10.0.0.2:8000": world.Ready, "10.0.0.3:8000": world.Ready}},
		{sliceOfLlama("a", "10.0.0.1 ready: false"), map[string]world.Condition{"10.0.0.1:8000": world.Unready, "10.0.0.2:8000": world.Ready, "10.0.0.3:8000": world.Ready}},
		{sliceOfLlama("b", "10.0.0.2 ready: false, serving: true, terminating: true", "10.0.0.3"), map[string]world.Condition{"10.0.0.1:8000": world.Unready, "10.0.0.2:8000": world.Terminating, "10.0.0.3:8000": world.Ready}},
		{sliceOfLlama("b", "10.0.0.3"), map[string]world.Condition{"10.0.0.1:8000": world.Unready, "10.0.0.3:8000": world.Ready}},
	} {
		c.apply(step.slice)
		f.until(t, pool, step.want)
	}
	c.remove(sliceOfLlama("b"))
	f.until(t, pool, map[string]world.Condition{"10.0.0.1:8000": world.Unready})
}

// An API server that is killed takes no endpoint with it. After a while its word on readiness no longer counts; when it is back,
// what has changed meanwhile is known.
func TestAnOutageEmptiesNothing(t *testing.T) {
	c := startCluster(t, "fra-1")
	c.apply(sliceOfLlama("a", "10.0.0.1", "10.0.0.2 ready: false"))
	w, f := watching(t, serving(fromService, c))
	pool := poolIn("fra-1")
	f.until(t, pool, map[string]world.Condition{"10.0.0.1:8000": world.Ready, "10.0.0.2:8000": world.Unready})
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	f.until(t, pool, map[string]world.Condition{"10.0.0.1:8000": world.Unsaid, "10.0.0.2:8000": world.Unsaid})
	if s := w.Status(); len(s) != 1 || !s[0].Stale || len(s[0].Problems) == 0 || time.Since(s[0].Heard) < time.Second {
		t.Errorf("status %+v", s)
	}
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.apply(sliceOfLlama("a", "10.0.0.1", "10.0.0.3"))
	f.until(t, pool, map[string]world.Condition{"10.0.0.1:8000": world.Ready, "10.0.0.3:8000": world.Ready})
	eventually(t, "no problem is left", func() bool {
		s := w.Status()
		return !s[0].Stale && len(s[0].Problems) == 0
	})
}

// A list is a word from an API server like any other: one that lists its objects and never answers whether it lives becomes stale.
func TestAServerThatOnlyListsBecomesStale(t *testing.T) {
	c := startCluster(t, "fra-1")
	c.apply(sliceOfLlama("a", "10.0.0.1"))
	w, f := watchingAs(t, Config{Patience: time.Nanosecond}, serving(fromService, c))
	f.until(t, poolIn("fra-1"), map[string]world.Condition{"10.0.0.1:8000": world.Unsaid})
	if s := w.Status(); s[0].Heard.IsZero() || !s[0].Stale {
		t.Errorf("status %+v", s)
	}
}

// An API server that hangs holds nobody else up, and goes on where it was when it lives again.
func TestAHangingServerHoldsNobodyUp(t *testing.T) {
	hanging, well := startCluster(t, "fra-1"), startCluster(t, "iad-1")
	hanging.apply(sliceOfLlama("a", "10.0.0.1"))
	well.apply(sliceOfLlama("a", "10.1.0.1"))
	w, f := watching(t, serving(fromService, hanging, well))
	f.until(t, poolIn("fra-1"), map[string]world.Condition{"10.0.0.1:8000": world.Ready})
	f.until(t, poolIn("iad-1"), map[string]world.Condition{"10.1.0.1:8000": world.Ready})
	if err := hanging.Pause(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it counts as stale", func() bool { return w.Status()[0].Stale })
	well.apply(sliceOfLlama("a", "10.1.0.2"))
	f.until(t, poolIn("iad-1"), map[string]world.Condition{"10.1.0.2:8000": world.Ready})
	f.until(t, poolIn("fra-1"), map[string]world.Condition{"10.0.0.1:8000": world.Unsaid})

	// Another Watcher starts meanwhile: it has to do with the one that answers.
	_, late := watching(t, serving(fromService, hanging, well))
	late.until(t, poolIn("iad-1"), map[string]world.Condition{"10.1.0.2:8000": world.Ready})
	if _, ok := late.now(poolIn("fra-1")); ok {
		t.Error("something was said of a cluster that was never heard")
	}

	if err := hanging.Resume(); err != nil {
		t.Fatal(err)
	}
	hanging.apply(sliceOfLlama("a", "10.0.0.2"))
	for _, f := range []*told{f, late} {
		f.until(t, poolIn("fra-1"), map[string]world.Condition{"10.0.0.2:8000": world.Ready})
	}
}

// Clusters and pools come and go while the Watcher runs.
func TestClustersComeAndGo(t *testing.T) {
	first, second := startCluster(t, "fra-1"), startCluster(t, "iad-1")
	first.apply(sliceOfLlama("a", "10.0.0.1"))
	second.apply(sliceOfLlama("a", "10.1.0.1"))
	w, f := watching(t, serving(fromService, first))
	f.until(t, poolIn("fra-1"), map[string]world.Condition{"10.0.0.1:8000": world.Ready})
	w.Update(serving(fromService, first, second))
	f.until(t, poolIn("iad-1"), map[string]world.Condition{"10.1.0.1:8000": world.Ready})

	w.Update(serving(fromService, second))
	eventually(t, "the first is let go of", func() bool { return len(w.Status()) == 1 })
	first.apply(sliceOfLlama("a", "10.0.0.2"))
	second.apply(sliceOfLlama("a", "10.1.0.2"))
	f.until(t, poolIn("iad-1"), map[string]world.Condition{"10.1.0.2:8000": world.Ready})
	if got, _ := f.now(poolIn("fra-1")); !maps.Equal(got, map[string]world.Condition{"10.0.0.1:8000": world.Ready}) {
		t.Errorf("after it was let go of, the first still says %v", got)
	}

	// The same name, another API server.
	second.writeKubeconfig(must(first.Kubeconfig()))
	f.until(t, poolIn("iad-1"), map[string]world.Condition{"10.0.0.2:8000": world.Ready})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
