package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/meridian-mesh/meridian/internal/controlplane"
	"github.com/meridian-mesh/meridian/internal/testbed/dataserver"
	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
	"github.com/meridian-mesh/meridian/world"
)

// flat are the policies of clusters that everyone dials directly, with a gRPC service whose data may be pinned by its label.
func flat(clusters []mesh.Cluster, pools string) string {
	var b strings.Builder
	for _, c := range clusters {
		fmt.Fprintf(&b, "---\napiVersion: meridian.dev/v1alpha1\nkind: Region\nmetadata: {name: %s}\nspec: {cloud: %s}\n", c.Region, c.Cloud)
		fmt.Fprintf(&b, "---\napiVersion: meridian.dev/v1alpha1\nkind: Cluster\nmetadata: {name: %s}\nspec: {region: %s}\n", c.Name, c.Region)
	}
	fmt.Fprintf(&b, `---
apiVersion: meridian.dev/v1alpha1
kind: Service
metadata: {name: features}
spec:
  protocol: GRPC
  paths: [/%s/]
  pools: %s
  health: {interval: 100ms, timeout: 100ms, unhealthyThreshold: 2, healthyThreshold: 1}
---
apiVersion: meridian.dev/v1alpha1
kind: Residency
metadata: {name: health-data}
spec: {match: {labels: [health]}, within: [EU]}
---
apiVersion: meridian.dev/v1alpha1
kind: Gateway
metadata: {name: everyone}
spec: {listeners: [{name: http, port: 8080}], dataLabelHeader: x-data-label}
`, dataserver.EchoService, pools)
	return b.String()
}

// plane runs a control plane over policies until the test ends.
func plane(t *testing.T, policies string) *controlplane.Plane {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(policies), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := controlplane.New(controlplane.Config{Policies: dir, XDS: "127.0.0.1:0", HTTP: "127.0.0.1:0", Demo: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !judged(p) {
		select {
		case <-deadline:
			t.Fatal("not every server is judged healthy")
		case <-tick.C:
		}
	}
	return p
}

// judged says whether every server is known to be well.
func judged(p *controlplane.Plane) bool {
	pools := p.State().World.Pools()
	for _, pool := range pools {
		for _, e := range pool.Endpoints {
			if e.Health.Verdict != world.Healthy {
				return false
			}
		}
	}
	return len(pools) > 0
}

// caller is a gRPC client in a cluster that gets its routes from the control plane.
func caller(t *testing.T, p *controlplane.Plane, cluster, target string) *grpc.ClientConn {
	t.Helper()
	bootstrap := fmt.Sprintf(`{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
		"node": {"id": "caller-1", "cluster": %q}
	}`, p.XDS().String(), cluster)
	resolver, err := xds.NewXDSResolverWithConfigForTesting([]byte(bootstrap))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(target, grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// A gRPC client without a proxy calls the nearest cluster, moves on when that dies, and keeps what is pinned inside.
func TestGRPCClientWithoutAProxyFailsOverInsideItsBoundary(t *testing.T) {
	servers, pools := data(t, dataserver.GRPC, three())
	p := plane(t, flat(three(), pools))
	conn := caller(t, p, "iad-1", "xds:///features")
	ask := func(labels ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		ctx = metadata.NewOutgoingContext(ctx, metadata.MD{"x-data-label": labels})
		var header metadata.MD
		if err := conn.Invoke(ctx, dataserver.EchoMethod, wrapperspb.String("hello"), &wrapperspb.StringValue{}, grpc.Header(&header)); err != nil {
			return "refused"
		}
		return strings.Join(header.Get("x-served-by"), "")
	}
	failsOverInside(t, servers, false, func() string { return ask("health") })
	for _, name := range []string{"dub-1", "fra-1"} {
		if err := servers[name].Refuse(false); err != nil {
			t.Fatal(err)
		}
	}
	if got := ask("health", "health"); got != "refused" {
		t.Errorf("a label that comes twice: %s", got)
	}
	for _, c := range []struct{ down, next string }{{"", "iad-1"}, {"iad-1", "dub-1"}, {"dub-1", "fra-1"}} {
		if c.down != "" {
			if err := servers[c.down].Refuse(true); err != nil {
				t.Fatal(err)
			}
		}
		got := ask()
		for deadline := time.Now().Add(10 * time.Second); got != c.next && time.Now().Before(deadline); got = ask() {
		}
		if got != c.next {
			t.Errorf("with %q down: %s, want %s", c.down, got, c.next)
		}
	}
	for _, proxy := range p.Proxies() {
		if !strings.HasPrefix(proxy.Version, "gRPC Go") || string(proxy.Viewpoint) != "gateway/virginia/iad-1/grpc" {
			t.Errorf("proxy %+v", proxy)
		}
	}
}
