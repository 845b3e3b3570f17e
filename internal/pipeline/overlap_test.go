package pipeline

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// overlapping are two clusters whose pods come from the same range, behind gateways or not, and data that must stay in one.
func overlapping(t *testing.T, gateways bool) *policies.Set {
	t.Helper()
	behind := func(address string) string {
		if !gateways {
			return ""
		}
		return ", gateways: [{address: " + address + ", port: 8443}]"
	}
	text := `
apiVersion: meridian.dev/v1alpha1
kind: Region
metadata: {name: frankfurt}
spec: {cloud: aws/eu-central-1}
---
apiVersion: meridian.dev/v1alpha1
kind: Region
metadata: {name: virginia}
spec: {cloud: aws/us-east-1}
---
apiVersion: meridian.dev/v1alpha1
kind: Cluster
metadata: {name: fra-1}
spec: {region: frankfurt, kubernetes: {kubeconfig: /fra}` + behind("127.1.0.1") + `}
---
apiVersion: meridian.dev/v1alpha1
kind: Cluster
metadata: {name: iad-1}
spec: {region: virginia, kubernetes: {kubeconfig: /iad}` + behind("127.2.0.1") + `}
---
apiVersion: meridian.dev/v1alpha1
kind: Service
metadata: {name: llama}
spec: {models: [llama], pools: [{cluster: fra-1, from: {namespace: m, name: llama}}, {cluster: iad-1, from: {namespace: m, name: llama}}]}
---
apiVersion: meridian.dev/v1alpha1
kind: Residency
metadata: {name: health-data}
spec: {match: {labels: [health]}, within: [EU]}
---
apiVersion: meridian.dev/v1alpha1
kind: Gateway
metadata: {name: edge}
spec:
  listeners: [{name: http, port: 8080}]
  eastWest: {port: 8443, certificateFile: /tls.crt, privateKeyFile: /tls.key, trustBundleDir: /bundles}
`
	set, diagnostics := policies.Parse([]policies.File{{Name: "overlap.yaml", Bytes: []byte(text)}})
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	return set
}

// Pods of two clusters may have the same address where each cluster has a network of its own. Where there is one network for both,
// nobody can say which of them is meant, and data that is pinned to one must not go there.
func TestPodsOfTwoClustersMayHaveTheSameAddressBehindGateways(t *testing.T) {
	for name, gateways := range map[string]bool{"behind gateways": true, "in one network": false} {
		t.Run(name, func(t *testing.T) {
			set := overlapping(t, gateways)
			synctest.Test(t, func(t *testing.T) {
				p, err := New(Config{Publish: func(*xds.Snapshot, time.Time) {}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				p.SetPolicies(set)
				for region, c := range map[policies.RegionName]policies.ClusterName{"frankfurt": "fra-1", "virginia": "iad-1"} {
					p.SeeViewpoint(world.Viewpoint{Role: policies.RoleGateway, Region: region, Cluster: c})
					p.Find(world.PoolFound{Pool: world.PoolKey{Service: "llama", Cluster: c},
						Endpoints: []world.FoundEndpoint{{Address: netip.MustParseAddrPort("10.0.0.1:8000"), Condition: world.Ready}}})
				}
				go func() { ended <- p.Run(ctx) }()
				synctest.Wait()
				state := p.State()
				if state.BuildError != nil {
					t.Fatal(state.BuildError)
				}
				if refused := len(state.Refused) > 0; refused == gateways {
					t.Errorf("published %d, refused %v", len(state.Published), state.Refused)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
