package controlplane

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
)

// published fills a state folder, as a control plane before this one did.
func published(t *testing.T, note string, viewpoints ...world.ViewpointID) (dir string) {
	t.Helper()
	dir = t.TempDir()
	store, _, err := cache.OpenStore(cache.StoreConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range viewpoints {
		store.Save(xds.NewSnapshot(v, nil), time.Unix(1_800_000_000, 0).UTC())
	}
	store.Attach([]byte(note))
	ended, end := context.WithCancel(t.Context())
	end()
	if err := store.Run(ended); err != nil {
		t.Fatal(err)
	}
	return dir
}

// restarted makes a plane that has a state folder and is not run.
func restarted(t *testing.T, dir string) (*Plane, *strings.Builder) {
	t.Helper()
	var log strings.Builder
	p, err := New(Config{Policies: filepath.Join(t.TempDir(), "gone"), StateDir: dir, XDS: "127.0.0.1:0", HTTP: "127.0.0.1:0", Demo: true,
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, &log
}

const clusters = `{"clusters": [{"metadata": {"name": "fra-1"}, "spec": {"region": "frankfurt", "trustDomain": "fra.example",
	"proxies": [{"role": "gateway", "spiffeIDs": ["spiffe://fra.example/gateway"]}]}}]}`

func TestRestoredStateKnowsWhereClustersAreAndWhoseProxiesAreWhose(t *testing.T) {
	p, _ := restarted(t, published(t, clusters, "gateway/frankfurt/fra-1"))
	if region, ok := p.regionOf("fra-1"); !ok || region != "frankfurt" {
		t.Errorf("fra-1 is in %q, %v", region, ok)
	}
	if c, ok := p.clusterOf("fra-1"); !ok || c.Spec.Proxies[0].SPIFFEIDs[0] != "spiffe://fra.example/gateway" || c.Spec.TrustDomain != "fra.example" {
		t.Errorf("cluster is %+v, %v", c, ok)
	}
	if _, ok := p.clusterOf("dub-1"); ok {
		t.Error("a cluster that nobody knows is known")
	}
	if stale := p.stale(); len(stale) != 1 || stale[0] != (StaleStatus{"gateway/frankfurt/fra-1", time.Unix(1_800_000_000, 0).UTC()}) {
		t.Errorf("stale is %v", stale)
	}
	p.publish(xds.NewSnapshot("gateway/frankfurt/fra-1", nil), time.Time{})
	if stale := p.stale(); len(stale) > 0 {
		t.Errorf("stale after something newer: %v", stale)
	}
}

// What the policies have no cluster for, or in another region, is not there after the next restart.
func TestClustersThatAreNoMoreAreForgotten(t *testing.T) {
	dir := published(t, clusters, "gateway/dublin/fra-1", "gateway/frankfurt/dub-1", "gateway/frankfurt/fra-1", "sidecar/frankfurt/fra-1/grpc@acme")
	p, _ := restarted(t, dir)
	p.keepPolicies(&policies.Set{Clusters: []policies.Cluster{{Metadata: policies.Metadata[policies.ClusterName]{Name: "fra-1"}, Spec: policies.ClusterSpec{Region: "frankfurt"}}}})
	ended, end := context.WithCancel(t.Context())
	end()
	if err := p.store.Run(ended); err != nil {
		t.Fatal(err)
	}
	p, _ = restarted(t, dir)
	if stale := p.stale(); len(stale) != 2 || stale[0].Viewpoint != "gateway/frankfurt/fra-1" || stale[1].Viewpoint != "sidecar/frankfurt/fra-1/grpc@acme" {
		t.Errorf("restored are %v", stale)
	}
}

func TestUnusableStateIsLoudAndNoReasonNotToServe(t *testing.T) {
	damaged := func(name string, content string) func(*testing.T) string {
		return func(t *testing.T) string {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			return dir
		}
	}
	for name, c := range map[string]struct {
		dir  func(*testing.T) string
		says string
	}{
		"a corrupt file":       {damaged("published.log", "meridian-published 1\nx y\n"), "the line at byte 21 does not have its checksum; it is set aside"},
		"a newer file":         {damaged("published.log", "meridian-published 2\n"), "it is left alone"},
		"no folder":            {func(t *testing.T) string { return filepath.Join(damaged("file", "")(t), "file") }, "not a directory"},
		"a folder in use":      {func(t *testing.T) string { dir := t.TempDir(); restarted(t, dir); return dir }, "in use by another process"},
		"no note":              {func(t *testing.T) string { return published(t, "", "gateway/frankfurt/fra-1") }, "read where clusters are"},
		"an unknown viewpoint": {func(t *testing.T) string { return published(t, clusters, "gateway/frankfurt/fra-1", "odd") }, `viewpoint \"odd\" is not of the form`},
	} {
		t.Run(name, func(t *testing.T) {
			p, log := restarted(t, c.dir(t))
			if n := testutil.ToFloat64(p.metrics.stateErrors); n != 1 || !strings.Contains(log.String(), c.says) {
				t.Errorf("%v errors, want 1 and a log that says %q:\n%s", n, c.says, log)
			}
			if stale := p.stale(); len(stale) > 0 {
				t.Errorf("restored all the same: %v", stale)
			}
		})
	}
}
