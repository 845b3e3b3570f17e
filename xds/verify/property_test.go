package verify

import (
	"flag"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/build"
)

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
		own := rapid.SampledFrom([]string{"", ", jurisdictions: [vault]"}).Draw(t, "jurisdictions")
		object("Region", fmt.Sprintf("r%d", r), "{cloud: "+clouds[r]+own+"}")
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
	defined := ", jurisdictions: [{name: DACH, countries: [DE, AT, CH]}]"
	for r := range rapid.IntRange(0, 4).Draw(t, "rules") {
		var match []string
		if rapid.Bool().Draw(t, "by country") {
			match = append(match, "countries: ["+some("countries", "EU", "DE", "US", "CH", "SG", "DACH")+"]")
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
		within := some("within", "EU", "EEA", "DE", "IE", "US", "SG", "DACH", "vault", "region/r0")
		object("Residency", fmt.Sprintf("rule%d", r), "{match: {"+strings.Join(match, ", ")+"}, within: ["+within+"]"+unknown+defined+"}")
		defined = ""
	}
	location := rapid.SampledFrom([]string{"source: GeoIP, database: g.mmdb", "source: GeoService, service: {address: 127.0.0.9, port: 9002}"}).Draw(t, "location")
	object("Gateway", "edge", "{listeners: [{name: http, port: 8080}], eastWest: {port: 9443, certificateFile: c, privateKeyFile: k, trustBundleDir: d}, location: {"+location+"}, tenantHeader: x-tenant}")
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

// drawn is a random world that has been planned and built.
type drawn struct {
	set       *policies.Set
	world     *world.World
	plan      *plan.Plan
	snapshots []*xds.Snapshot
}

// draw gives ok false for policies that are refused at the door, such as rules that overlap.
func draw(t *rapid.T) (d drawn, ok bool) {
	set, diagnostics := policies.Parse([]policies.File{{Name: "drawn.yaml", Bytes: []byte(drawPolicies(t))}})
	if len(diagnostics) > 0 {
		return drawn{}, false
	}
	return d.build(t, set, drawWorld(t, set)), true
}

func (drawn) build(t *rapid.T, set *policies.Set, w *world.World) drawn {
	d := drawn{set: set, world: w, plan: plan.Compute(w, nil)}
	var err error
	if d.snapshots, err = build.Build(w, d.plan, nil); err != nil {
		t.Fatal(err)
	}
	return d
}

// checkWorlds runs a property on so many random worlds, unless a flag on the command line says how many. Enough of them
// must be valid: else it would say little.
func checkWorlds(t *testing.T, worlds int, property func(*rapid.T, drawn)) {
	const flagged, usual = "rapid.checks", "100"
	if flag.Lookup(flagged).Value.String() == usual {
		if err := flag.Set(flagged, strconv.Itoa(worlds)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Set(flagged, usual) }) // it was set before
	}
	valid, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		all++
		if d, ok := draw(t); ok {
			valid++
			property(t, d)
		}
	})
	if valid*4 < all {
		t.Errorf("only %d of %d drawn sets were valid", valid, all)
	}
}

func TestRandomWorldsKeepEveryBoundary(t *testing.T) {
	var c Checker
	checkWorlds(t, 2000, func(t *rapid.T, d drawn) {
		for _, s := range d.snapshots {
			for _, v := range c.Check(d.world, s) {
				t.Error(v)
			}
			for range 4 {
				d.requestStaysInside(t, s)
			}
		}
	})
}

// requestStaysInside is a second look that shares nothing with the walk: whatever is in the assignment of the class that
// a random request is admitted to must be in a region inside each rule that matches the request.
func (d drawn) requestStaysInside(t *rapid.T, s *xds.Snapshot) {
	service := rapid.SampledFrom(d.set.Services).Draw(t, "service").Metadata.Name
	country := rapid.SampledFrom([]geo.Country{"", "DE", "AT", "FR", "US", "CH", "SG", "BR"}).Draw(t, "country")
	tenant := rapid.SampledFrom([]policies.Tenant{"", "acme", "globex", "initech", "umbrella"}).Draw(t, "tenant")
	label := rapid.SampledFrom([]policies.DataLabel{"", "pii", "phi", "public"}).Draw(t, "label")
	outcome := d.plan.Admission.Admit(service, country, tenant, label)
	if outcome.Refusal != nil {
		return
	}
	r := s.Resource(xds.TypeEndpoint, xds.ClassCluster(service, outcome.Class))
	if r == nil {
		t.Fatalf("class %s of %s has no assignment", outcome.Class, service)
	}
	var a endpoint.ClusterLoadAssignment
	if err := proto.Unmarshal(r.Bytes, &a); err != nil {
		t.Fatal(err)
	}
	for _, l := range a.Endpoints {
		for _, e := range l.LbEndpoints {
			region := d.regionOf(t, e)
			for _, rule := range d.set.Residencies {
				if dumbBinds(rule.Spec, service, country, tenant, label) && !slices.ContainsFunc(rule.Spec.Within, func(name string) bool { return dumbHolds(name, region) }) {
					t.Errorf("%s: %s from %q at priority %d is in %s, outside %s", s.Viewpoint, r.Name, country, l.Priority, region.Metadata.Name, rule.Metadata.Name)
				}
			}
		}
	}
}

// regionOf finds where an endpoint is by searching the policies.
func (d drawn) regionOf(t *rapid.T, e *endpoint.LbEndpoint) *policies.Region {
	internal := e.GetEndpoint().GetAddress().GetEnvoyInternalAddress().GetServerListenerName()
	socket := e.GetEndpoint().GetAddress().GetSocketAddress()
	for _, c := range d.set.Clusters {
		found := internal == "to/"+string(c.Metadata.Name)
		for _, g := range c.Spec.Gateways {
			found = found || g.Address.String() == socket.GetAddress()
		}
		for _, s := range d.set.Services {
			for _, p := range s.Spec.Pools {
				found = found || p.Cluster == c.Metadata.Name && p.Endpoints[0].Address.String() == socket.GetAddress()
			}
		}
		if found {
			region, _ := d.set.Region(c.Spec.Region)
			return region
		}
	}
	t.Fatalf("nobody knows %v", e)
	return nil
}

func dumbBinds(r policies.ResidencySpec, service policies.ServiceName, country geo.Country, tenant policies.Tenant, label policies.DataLabel) bool {
	if len(r.Match.Tenants) > 0 && !slices.Contains(r.Match.Tenants, tenant) || len(r.Match.Labels) > 0 && !slices.Contains(r.Match.Labels, label) ||
		len(r.Match.Services) > 0 && !slices.Contains(r.Match.Services, service) {
		return false
	}
	return len(r.Match.Countries) == 0 || country == "" && r.UnknownLocation != policies.UnknownIgnore ||
		slices.ContainsFunc(r.Match.Countries, func(name string) bool { return slices.Contains(dumbCountries(name), country) })
}

func dumbHolds(name string, r *policies.Region) bool {
	switch name {
	case "region/r0":
		return r.Metadata.Name == "r0"
	case "vault":
		return slices.Contains(r.Spec.Jurisdictions, "vault")
	}
	return slices.Contains(dumbCountries(name), r.Spec.Place.Country)
}

// dumbCountries are those of the drawn countries that a name stands for.
func dumbCountries(name string) []geo.Country {
	switch name {
	case "EU", "EEA":
		return []geo.Country{"DE", "AT", "FR", "IE"}
	case "DACH":
		return []geo.Country{"DE", "AT", "CH"}
	}
	return []geo.Country{geo.Country(name)}
}

// A cluster that is put into a class by hand is a violation just where a rule of the class excludes its region.
func TestPlantedLeaksAreFound(t *testing.T) {
	leaks := 0
	checkWorlds(t, 500, func(t *rapid.T, d drawn) {
		s := rapid.SampledFrom(d.snapshots).Draw(t, "snapshot")
		to := rapid.SampledFrom(d.set.Clusters).Draw(t, "to")
		service := rapid.SampledFrom(d.set.Services).Draw(t, "service")
		classes := d.plan.Admission.Classes(service.Metadata.Name)
		if pinned := slices.DeleteFunc(slices.Clone(classes), func(c world.ClassID) bool { return !c.Pinned() }); len(pinned) > 0 && rapid.Bool().Draw(t, "pinned") {
			classes = pinned
		}
		class := rapid.SampledFrom(classes).Draw(t, "class")
		serves := slices.ContainsFunc(service.Spec.Pools, func(p policies.Pool) bool { return p.Cluster == to.Metadata.Name })
		if service.Spec.Protocol == policies.ProtocolTCP || !serves {
			return
		}
		region, _ := d.set.Region(to.Spec.Region)
		leak := false
		for _, name := range class.Rules() {
			rule, _ := d.set.Residency(name)
			leak = leak || !slices.ContainsFunc(rule.Spec.Within, func(name string) bool { return dumbHolds(name, region) })
		}
		planted := plant(t, s, xds.ClassCluster(service.Metadata.Name, class), "to/"+string(to.Metadata.Name))
		got := codesOf(Check(d.world, planted))
		if leak != slices.Equal(got, []Code{OutsideBoundary}) || !leak && len(got) > 0 {
			t.Errorf("%s in class %s of %s: leak %v, found %v", to.Metadata.Name, class, service.Metadata.Name, leak, got)
		}
		if leak {
			leaks++
		}
	})
	if leaks < 5 {
		t.Errorf("only %d leaks were planted", leaks)
	}
}

// plant adds a hop to an assignment, at a priority of its own.
func plant(t *rapid.T, s *xds.Snapshot, assignment, hop string) *xds.Snapshot {
	var a endpoint.ClusterLoadAssignment
	if err := proto.Unmarshal(s.Resource(xds.TypeEndpoint, assignment).Bytes, &a); err != nil {
		t.Fatal(err)
	}
	next := uint32(0)
	for _, l := range a.Endpoints {
		next = max(next, l.Priority+1)
	}
	a.Endpoints = append(a.Endpoints, standby(next, "anywhere", internalTo(hop)))
	r, err := xds.NewResource(xds.TypeEndpoint, assignment, &a)
	if err != nil {
		t.Fatal(err)
	}
	return with(s, r)
}

// A Checker that remembers says the same as one that does not, whatever it was asked before.
func TestMemoryChangesNothing(t *testing.T) {
	checkWorlds(t, 100, func(t *rapid.T, d drawn) {
		var c Checker
		for range 6 {
			s := rapid.SampledFrom(d.snapshots).Draw(t, "snapshot")
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 1: // health changes, and with it priorities and weights
				d = d.build(t, d.set, drawWorld(t, d.set))
				s = rapid.SampledFrom(d.snapshots).Draw(t, "snapshot")
			case 2: // something is broken
				r := rapid.SampledFrom(slices.Collect(s.Of(xds.TypeEndpoint).All())).Draw(t, "assignment")
				s = plant(t, s, r.Name, "to/"+string(rapid.SampledFrom(d.set.Clusters).Draw(t, "to").Metadata.Name))
			}
			if diff := cmp.Diff(Check(d.world, s), c.Check(d.world, s), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
				t.Fatalf("with memory (+) and without (-):\n%s", diff)
			}
		}
	})
}
