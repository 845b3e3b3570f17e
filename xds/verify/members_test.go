package verify

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/build"
)

// found is a mesh whose pools are read from their clusters: two in the EU, one of them behind gateways, and one in the US.
const found = `
apiVersion: meridian.dev/v1alpha1
kind: Region
metadata: {name: eu}
spec: {cloud: aws/eu-central-1}
---
apiVersion: meridian.dev/v1alpha1
kind: Region
metadata: {name: us}
spec: {cloud: aws/us-east-1}
---
apiVersion: meridian.dev/v1alpha1
kind: Cluster
metadata: {name: berlin}
spec: {region: eu, kubernetes: {kubeconfig: /kube/berlin}}
---
apiVersion: meridian.dev/v1alpha1
kind: Cluster
metadata: {name: dublin}
spec: {region: eu, gateways: [{address: 127.0.1.2, port: 9443}], kubernetes: {kubeconfig: /kube/dublin}}
---
apiVersion: meridian.dev/v1alpha1
kind: Cluster
metadata: {name: ohio}
spec: {region: us, kubernetes: {kubeconfig: /kube/ohio}}
---
apiVersion: meridian.dev/v1alpha1
kind: Residency
metadata: {name: eu-people}
spec: {match: {countries: [EU]}, within: [EU]}
---
apiVersion: meridian.dev/v1alpha1
kind: Gateway
metadata: {name: edge}
spec:
  listeners: [{name: http, port: 8080}]
  eastWest: {port: 9443, certificateFile: c, privateKeyFile: k, trustBundleDir: d}
  location: {source: GeoIP, database: g.mmdb}
`

// foundWorld is the mesh with services of a pool in each cluster, and proxies in each.
func foundWorld(t interface{ Fatal(...any) }, services int) *world.Writer {
	var doc strings.Builder
	doc.WriteString(found)
	for s := range services {
		var pools []string
		for _, c := range []string{"berlin", "dublin", "ohio"} {
			pools = append(pools, fmt.Sprintf("{cluster: %s, from: {kind: Service, namespace: models, name: s%d}}", c, s))
		}
		protocol := "models: [m%d]"
		if s == 1 {
			protocol = "protocol: TCP, port: 900%d"
		}
		fmt.Fprintf(&doc, "---\napiVersion: meridian.dev/v1alpha1\nkind: Service\nmetadata: {name: s%d}\nspec: {%s, pools: [%s]}\n",
			s, fmt.Sprintf(protocol, s), strings.Join(pools, ", "))
	}
	set, diagnostics := policies.Parse([]policies.File{{Name: "found.yaml", Bytes: []byte(doc.String())}})
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics[0])
	}
	facts := []world.Fact{world.TimeAdvanced{Now: time.Unix(1_800_000_000, 0)}, world.PoliciesLoaded{Set: set}}
	for _, c := range set.Clusters {
		facts = append(facts, world.ViewpointSeen{Viewpoint: world.Viewpoint{Role: policies.RoleGateway, Region: c.Spec.Region, Cluster: c.Metadata.Name}})
	}
	var writer world.Writer
	writer.Commit(facts)
	return &writer
}

// TestCheckerFollowsEndpoints has pools gain and lose endpoints, among them addresses that another pool has or had, and checks
// snapshots of now and of earlier: with a memory the verdict is the same as without.
func TestCheckerFollowsEndpoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		writer, planned, built := foundWorld(t, 3), &plan.Memo{}, &build.Memo{}
		var c Checker
		var earlier []*xds.Snapshot
		passed := 0
		for range rapid.IntRange(4, 10).Draw(t, "steps") {
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				pool := rapid.SampledFrom(writer.Current().Pools()).Draw(t, "pool")
				writer.Commit([]world.Fact{world.PoolFound{Pool: pool.Key, Endpoints: drawFound(t, pool.Key)}})
			}
			w := writer.Current()
			snapshots, err := build.Build(w, plan.Compute(w, planned), built)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range slices.Concat(snapshots, earlier) {
				want, got := Check(w, s), c.Check(w, s)
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
					t.Fatalf("%s: without memory (-), with it (+):\n%s", s.Viewpoint, diff)
				}
				if len(want) == 0 {
					passed++
				}
			}
			earlier = snapshots
		}
		if passed == 0 {
			t.Skip("nothing was right")
		}
	})
}

// drawFound is mostly what only this pool has, and rarely what any may have.
func drawFound(t *rapid.T, pool world.PoolKey) []world.FoundEndpoint {
	own := "10." + fmt.Sprint(pool.Service[1]-'0') + "." + fmt.Sprint(len(pool.Cluster)) + "."
	hosts := rapid.SliceOfNDistinct(rapid.IntRange(1, 4), 0, 3, rapid.ID).Draw(t, "hosts")
	var all []world.FoundEndpoint
	for _, h := range hosts {
		all = append(all, world.FoundEndpoint{Address: netip.MustParseAddrPort(own + fmt.Sprint(h) + ":8000"), Condition: world.Ready})
	}
	if rapid.IntRange(0, 5).Draw(t, "foreign") == 0 {
		all = append(all, world.FoundEndpoint{Address: netip.MustParseAddrPort("10.9.9.9:8000"), Condition: world.Ready})
	}
	return all
}

// BenchmarkCheckMembers checks what follows when a pool of 1,000 services in three clusters gains a server, and loses it.
func BenchmarkCheckMembers(b *testing.B) {
	writer, planned, built := foundWorld(b, 1000), &plan.Memo{}, &build.Memo{}
	endpoints := func(p int, count byte) world.PoolFound {
		f := world.PoolFound{Pool: writer.Current().Pools()[p].Key}
		for e := range count {
			f.Endpoints = append(f.Endpoints, world.FoundEndpoint{Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(p >> 8), byte(p), e}), 8000), Condition: world.Ready})
		}
		return f
	}
	var all []world.Fact
	for p := range writer.Current().Pools() {
		all = append(all, endpoints(p, 4))
	}
	writer.Commit(all)
	var c Checker
	check := func() {
		b.StopTimer()
		w := writer.Current()
		snapshots, err := build.Build(w, plan.Compute(w, planned), built)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		for _, s := range snapshots {
			if violations := c.Check(w, s); len(violations) > 0 {
				b.Fatal(violations[0])
			}
		}
	}
	check()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		writer.Commit([]world.Fact{endpoints(500, byte(4+i%2))})
		check()
	}
}
