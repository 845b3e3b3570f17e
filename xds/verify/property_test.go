package verify

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/build"
)

// TestMain makes property tests try thousands of worlds; a flag on the command line still decides.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "2000"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}

var clouds = []string{"aws/eu-central-1", "aws/eu-west-1", "aws/eu-west-2", "aws/us-east-1", "gcp/europe-west6", "aws/ap-southeast-1"}

// drawPolicies writes a random set of policies.
func drawPolicies(t *rapid.T) string {
	var doc strings.Builder
	object := func(kind, name, spec string) {
		fmt.Fprintf(&doc, "---\napiVersion: meridian.dev/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", kind, name, spec)
	}
	some := func(label string, of ...string) string {
		return strings.Join(rapid.SliceOfNDistinct(rapid.SampledFrom(of), 1, 2, rapid.ID).Draw(t, label), ", ")
	}
	regions := rapid.IntRange(1, len(clouds)).Draw(t, "regions")
	for r := range regions {
		object("Region", fmt.Sprintf("r%d", r), "{cloud: "+clouds[r]+"}")
	}
	clusters := rapid.IntRange(1, 4).Draw(t, "clusters")
	for c := range clusters {
		gateways := ""
		if rapid.Bool().Draw(t, "behind gateways") {
			gateways = fmt.Sprintf(", gateways: [{address: 127.100.0.%d, port: 9443}]", c+1)
		}
		object("Cluster", fmt.Sprintf("c%d", c), fmt.Sprintf("{region: r%d%s}", rapid.IntRange(0, regions-1).Draw(t, "region"), gateways))
	}
	services := rapid.IntRange(1, 3).Draw(t, "services")
	for s := range services {
		var pools []string
		for c := range clusters {
			if c == 0 || rapid.Bool().Draw(t, "pool") {
				pools = append(pools, fmt.Sprintf("{cluster: c%d, endpoints: [{address: 127.%d.0.%d, port: 80}]}", c, s+1, c+1))
			}
		}
		how := rapid.SampledFrom([]string{"models: [m%[1]d, \"m%[1]d:*\"]", "protocol: HTTP, paths: [/s%[1]d]", "protocol: TCP, port: 90%[1]d"}).Draw(t, "protocol")
		object("Service", fmt.Sprintf("s%d", s), "{"+fmt.Sprintf(how, s)+", pools: ["+strings.Join(pools, ", ")+"]}")
	}
	for r := range rapid.IntRange(0, 4).Draw(t, "rules") {
		var match []string
		if rapid.Bool().Draw(t, "by country") {
			match = append(match, "countries: ["+some("countries", "EU", "DE", "US", "CH", "SG", "GB")+"]")
		}
		if rapid.Bool().Draw(t, "by tenant") {
			match = append(match, "tenants: ["+some("tenants", "acme", "globex", "initech")+"]")
		}
		if rapid.Bool().Draw(t, "by label") {
			match = append(match, "labels: ["+some("labels", "pii", "phi")+"]")
		}
		if rapid.Bool().Draw(t, "by service") {
			match = append(match, "services: ["+some("services", "s0", "s1", "s2")+"]")
		}
		unknown := ""
		if len(match) > 0 && strings.HasPrefix(match[0], "countries") {
			unknown = ", unknownLocation: " + rapid.SampledFrom([]string{"Refuse", "Pin", "Ignore"}).Draw(t, "unknown")
		}
		object("Residency", fmt.Sprintf("rule%d", r), "{match: {"+strings.Join(match, ", ")+"}, within: ["+some("within", "EU", "EEA", "DE", "IE", "GB", "US", "CH", "SG", "region/r0")+"]"+unknown+"}")
	}
	object("Gateway", "edge", "{listeners: [{name: http, port: 8080}], eastWest: {port: 9443, certificateFile: c, privateKeyFile: k, trustBundleDir: d}, location: {source: GeoIP, database: g.mmdb}, tenantHeader: x-tenant}")
	return doc.String()
}

// drawWorld gives the policies a random state: proxies everywhere, health, load and demand.
func drawWorld(t *rapid.T, set *policies.Set) *world.World {
	now := time.Unix(1_800_000_000, 0)
	facts := []world.Fact{world.TimeAdvanced{Now: now}, world.PoliciesLoaded{Set: set}}
	for _, c := range set.Clusters {
		facts = append(facts, world.ViewpointSeen{Viewpoint: world.Viewpoint{Role: policies.RoleGateway, Region: c.Spec.Region, Cluster: c.Metadata.Name}})
	}
	for _, s := range set.Services {
		for _, p := range s.Spec.Pools {
			key := world.PoolKey{Service: s.Metadata.Name, Cluster: p.Cluster}
			verdict := rapid.SampledFrom([]world.Verdict{world.Healthy, world.Healthy, world.Unhealthy, world.Unknown}).Draw(t, "verdict")
			facts = append(facts, world.EndpointJudged{Endpoint: world.EndpointKey{Pool: key, Address: p.Endpoints[0].AddrPort()}, Health: world.Health{Verdict: verdict, Since: now, At: now}})
		}
	}
	var writer world.Writer
	w, _ := writer.Commit(facts)
	return w
}

func TestRandomWorldsKeepEveryBoundary(t *testing.T) {
	checked := 0
	rapid.Check(t, func(t *rapid.T) {
		set, diagnostics := policies.Parse([]policies.File{{Name: "drawn.yaml", Bytes: []byte(drawPolicies(t))}})
		if len(diagnostics) > 0 {
			return // such as rules that overlap: refused at the door
		}
		checked++
		w := drawWorld(t, set)
		snapshots, err := build.Build(w, plan.Compute(w, nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range snapshots {
			for _, v := range Check(w, s) {
				t.Error(v)
			}
			dumbCheck(t, set, s)
		}
	})
	if checked < 100 {
		t.Errorf("only %d drawn sets were valid: the property says little", checked)
	}
}

// dumbCheck is a second look that shares nothing with the walk: for each class cluster, the region of each member cluster
// in its assignment must be inside each rule of the class.
func dumbCheck(t *rapid.T, set *policies.Set, s *xds.Snapshot) {
	for _, r := range s.Of(xds.TypeEndpoint) {
		parts := strings.Split(r.Name, "/")
		if parts[0] != "class" || parts[2] == "any" {
			continue
		}
		var a endpoint.ClusterLoadAssignment
		if err := proto.Unmarshal(r.Bytes, &a); err != nil {
			t.Fatal(err)
		}
		for _, l := range a.Endpoints {
			cluster, _ := set.Cluster(policies.ClusterName(l.Locality.Zone))
			region, _ := set.Region(cluster.Spec.Region)
			for _, rule := range strings.Split(parts[2], "+") {
				residency, _ := set.Residency(policies.ResidencyName(rule))
				if !slices.ContainsFunc(residency.Spec.Within, func(name string) bool { return dumbHolds(name, region) }) {
					t.Errorf("%s: %s at priority %d is in %s, outside %s", s.Viewpoint, r.Name, l.Priority, region.Spec.Place.Country, rule)
				}
			}
		}
	}
}

func dumbHolds(name string, r *policies.Region) bool {
	switch name {
	case "EU":
		return slices.Contains([]geo.Country{"DE", "IE"}, r.Spec.Place.Country)
	case "EEA":
		return slices.Contains([]geo.Country{"DE", "IE"}, r.Spec.Place.Country)
	case "region/r0":
		return r.Metadata.Name == "r0"
	}
	return geo.Country(name) == r.Spec.Place.Country
}
