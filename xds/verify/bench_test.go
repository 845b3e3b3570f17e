package verify

import (
	"fmt"
	"strings"
	"testing"
	"time"

	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/build"
)

// fleet is a mesh of clusters behind gateways, with services that have a pool of four servers in each cluster, and rules
// that make ten classes of each service: by country, tenant and label, and what they make together.
func fleet(b *testing.B, clusters, services int) (*world.Writer, *plan.Memo, *build.Memo) {
	b.Helper()
	var doc strings.Builder
	object := func(kind, name, spec string) {
		fmt.Fprintf(&doc, "---\napiVersion: meridian.dev/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", kind, name, spec)
	}
	for r, cloud := range clouds {
		object("Region", fmt.Sprintf("r%d", r), "{cloud: "+cloud+"}")
	}
	for c := range clusters {
		object("Cluster", fmt.Sprintf("c%d", c), fmt.Sprintf("{region: r%d, gateways: [{address: 127.0.1.%d, port: 9443}]}", c%len(clouds), c+1))
	}
	for s := range services {
		var pools []string
		for c := range clusters {
			var endpoints []string
			for e := range 4 {
				endpoints = append(endpoints, fmt.Sprintf("{address: 127.%d.%d.%d, port: %d}", c+1, s/250, s%250+1, 8000+e))
			}
			pools = append(pools, fmt.Sprintf("{cluster: c%d, endpoints: [%s]}", c, strings.Join(endpoints, ", ")))
		}
		object("Service", fmt.Sprintf("s%d", s), fmt.Sprintf("{models: [m%d], pools: [%s]}", s, strings.Join(pools, ", ")))
	}
	object("Residency", "eu-people", "{match: {countries: [EU]}, within: [EU]}")
	object("Residency", "acme", "{match: {tenants: [acme]}, within: [EU, US]}")
	object("Residency", "globex", "{match: {tenants: [globex]}, within: [IE, GB]}")
	object("Residency", "health", "{match: {labels: [phi]}, within: [IE, US, CH]}")
	object("Gateway", "edge", "{listeners: [{name: http, port: 8080}], eastWest: {port: 9443, certificateFile: c, privateKeyFile: k, trustBundleDir: d}, location: {source: GeoIP, database: g.mmdb}, tenantHeader: x-tenant}")
	set, diagnostics := policies.Parse([]policies.File{{Name: "fleet.yaml", Bytes: []byte(doc.String())}})
	if len(diagnostics) > 0 {
		b.Fatal(diagnostics[0])
	}
	var writer world.Writer
	writer.Commit([]world.Fact{world.TimeAdvanced{Now: time.Unix(1_800_000_000, 0)}, world.PoliciesLoaded{Set: set},
		world.ViewpointSeen{Viewpoint: world.Viewpoint{Role: policies.RoleGateway, Region: "r0", Cluster: "c0"}}})
	return &writer, &plan.Memo{}, &build.Memo{}
}

// BenchmarkCheck checks the snapshot of one viewpoint with 1,000 services of about ten classes in ten clusters: for the
// first time, again, after the health of one server has changed, and after one class has lost or won a cluster.
func BenchmarkCheck(b *testing.B) {
	writer, planned, built := fleet(b, 10, 1000)
	snapshot := func() (*world.World, *xds.Snapshot) {
		snapshots, err := build.Build(writer.Current(), plan.Compute(writer.Current(), planned), built)
		if err != nil {
			b.Fatal(err)
		}
		return writer.Current(), snapshots[0]
	}
	w, s := snapshot()
	fresh := func(b *testing.B, c *Checker, w *world.World, s *xds.Snapshot) {
		if violations := c.Check(w, s); len(violations) > 0 {
			b.Fatal(violations[0])
		}
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			fresh(b, &Checker{}, w, s)
		}
	})
	var c Checker
	b.Run("again", func(b *testing.B) {
		fresh(b, &c, w, s)
		b.ReportAllocs()
		for b.Loop() {
			fresh(b, &c, w, s)
		}
	})
	b.Run("one-server-changed", func(b *testing.B) {
		b.ReportAllocs()
		pool := writer.Current().Pools()[500]
		endpoint := world.EndpointKey{Pool: pool.Key, Address: pool.Endpoints[0].Address}
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			writer.Commit([]world.Fact{world.EndpointJudged{Endpoint: endpoint, Health: world.Health{Verdict: world.Healthy + world.Verdict(i%2)}}})
			w, s := snapshot()
			b.StartTimer()
			fresh(b, &c, w, s)
		}
	})
	b.Run("one-cluster-less", func(b *testing.B) {
		less := change(b, s, xds.TypeEndpoint, "class/s500/any", func(a *endpoint.ClusterLoadAssignment) { a.Endpoints = a.Endpoints[:len(a.Endpoints)-1] })
		fresh(b, &c, w, s)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			fresh(b, &c, w, []*xds.Snapshot{less, s}[i%2])
		}
	})
}
