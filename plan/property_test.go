package plan_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// drawSet is a small set of any shape that Parse may give.
func drawSet(t *rapid.T) *policies.Set {
	set := &policies.Set{Hash: rapid.StringN(8, 8, -1).Draw(t, "hash")}
	countries := []geo.Country{"DE", "FR", "US", "JP"}
	for i := range rapid.IntRange(1, 4).Draw(t, "regions") {
		place := rapid.Float64Range(-80, 80)
		set.Regions = append(set.Regions, region(fmt.Sprintf("r%d", i), rapid.SampledFrom(countries).Draw(t, "country"), place.Draw(t, "latitude"), place.Draw(t, "longitude")))
	}
	for i := range rapid.IntRange(1, 6).Draw(t, "clusters") {
		c := cluster(fmt.Sprintf("c%d", i), rapid.SampledFrom(set.Regions).Draw(t, "in").Metadata.Name)
		c.Spec.Drain = rapid.IntRange(0, 5).Draw(t, "drain") == 0
		c.Spec.DrainOver = policies.Duration(rapid.SampledFrom([]time.Duration{0, 3 * time.Second, time.Hour}).Draw(t, "drain over"))
		if rapid.IntRange(0, 3).Draw(t, "gateways") == 0 {
			c.Spec.Gateways = make([]policies.Address, 1)
		}
		set.Clusters = append(set.Clusters, c)
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "services") {
		in := slices.DeleteFunc(slices.Clone(set.Clusters), func(policies.Cluster) bool { return rapid.IntRange(0, 3).Draw(t, "absent") == 0 })
		if len(in) == 0 {
			in = set.Clusters[:1]
		}
		set.Services = append(set.Services, service(fmt.Sprintf("s%d", i), i, rapid.IntRange(1, 2).Draw(t, "endpoints"), in))
	}
	drawSources(t, set)
	for i := range rapid.IntRange(0, 4).Draw(t, "rules") {
		set.Residencies = append(set.Residencies, drawRule(t, fmt.Sprintf("rule%d", i), set))
	}
	if rapid.Bool().Draw(t, "traffic") {
		set.Traffics = append(set.Traffics, drawTraffic(t, set))
	}
	set.Gateways = []policies.Gateway{gatewayEverywhere(rapid.Bool().Draw(t, "east-west"))}
	return set
}

// drawSources has some pools be read from their clusters, from nowhere at first.
func drawSources(t *rapid.T, set *policies.Set) {
	for i := range set.Clusters {
		if rapid.Bool().Draw(t, "read") {
			set.Clusters[i].Spec.Kubernetes = &policies.Kubernetes{Kubeconfig: "/" + string(set.Clusters[i].Metadata.Name)}
		}
	}
	for i := range set.Services {
		for j := range set.Services[i].Spec.Pools {
			p := &set.Services[i].Spec.Pools[j]
			if c, _ := set.Cluster(p.Cluster); c.Spec.Kubernetes != nil {
				p.From, p.Endpoints = &policies.PoolSource{Kind: policies.FromService, Namespace: "models", Name: string(set.Services[i].Metadata.Name)}, nil
			}
		}
	}
}

func drawRule(t *rapid.T, name string, set *policies.Set) policies.Residency {
	rule := policies.Residency{Metadata: named(policies.ResidencyName(name))}
	match := &rule.Spec.Match
	if rapid.Bool().Draw(t, "by country") {
		match.Countries = []string{rapid.SampledFrom([]string{"EU", "DE", "US"}).Draw(t, "countries")}
		match.CountrySet, _ = geo.Jurisdiction(match.Countries[0])
		rule.Spec.UnknownLocation = rapid.SampledFrom([]policies.UnknownLocation{policies.UnknownRefuse, policies.UnknownPin, policies.UnknownIgnore}).Draw(t, "unknown")
	}
	if rapid.Bool().Draw(t, "by tenant") {
		match.Tenants = rapid.SliceOfN(rapid.SampledFrom([]policies.Tenant{"acme", "bank"}), 1, 2).Draw(t, "tenants")
	}
	if rapid.Bool().Draw(t, "by label") {
		match.Labels = []policies.DataLabel{rapid.SampledFrom([]policies.DataLabel{"pii", "health"}).Draw(t, "label")}
	}
	if rapid.IntRange(0, 3).Draw(t, "by service") == 0 {
		match.Services = []policies.ServiceName{rapid.SampledFrom(set.Services).Draw(t, "service").Metadata.Name}
	}
	rule.Spec.Within = rapid.SliceOfN(rapid.SampledFrom([]string{"EU", "US", "JP", "region/r0"}), 1, 2).Draw(t, "within")
	return rule
}

func drawTraffic(t *rapid.T, set *policies.Set) policies.Traffic {
	traffic := policies.Traffic{Metadata: named(policies.TrafficName("t"))}
	traffic.Spec.Spill = policies.Spill{TargetUtilization: rapid.IntRange(1, 100).Draw(t, "target"), MaxShiftPerSecond: rapid.IntRange(1, 100).Draw(t, "max shift")}
	if rapid.Bool().Draw(t, "prefers") {
		traffic.Spec.Failover.Regions = []policies.RegionName{rapid.SampledFrom(set.Regions).Draw(t, "prefer").Metadata.Name}
		traffic.Spec.Failover.Only = rapid.Bool().Draw(t, "only")
	}
	return traffic
}

// history draws facts about what a set names.
type history struct {
	*rapid.T
	set *policies.Set
	now time.Time
}

func (h *history) facts(most int) []world.Fact {
	var facts []world.Fact
	for range rapid.IntRange(1, most).Draw(h.T, "facts") {
		facts = append(facts, h.fact())
	}
	return facts
}

func (h *history) fact() world.Fact {
	switch rapid.IntRange(0, 8).Draw(h.T, "kind of fact") {
	case 0:
		return world.EndpointJudged{Endpoint: h.endpoint(), Health: world.Health{Verdict: rapid.SampledFrom([]world.Verdict{world.Healthy, world.Healthy, world.Unhealthy, world.Unknown}).Draw(h.T, "verdict")}}
	case 1:
		load := world.Load{Running: rapid.IntRange(0, 30).Draw(h.T, "running"), At: h.now, Stale: rapid.IntRange(0, 5).Draw(h.T, "stale") == 0}
		return world.EndpointMeasured{Endpoint: h.endpoint(), Load: load}
	case 2, 3:
		demand := world.Demand{InFlight: rapid.SampledFrom([]float64{0, 0.2, 3, 12, 60, 1e6}).Draw(h.T, "in flight"), At: h.now}
		return world.DemandSeen{Key: h.key(), Cluster: rapid.SampledFrom(h.set.Clusters).Draw(h.T, "to").Metadata.Name, Demand: demand}
	case 4:
		pair := rapid.SampledFrom(h.set.Regions)
		return world.RoundTripMeasured{From: pair.Draw(h.T, "from").Metadata.Name, To: pair.Draw(h.T, "to").Metadata.Name, RTT: time.Duration(rapid.IntRange(1, 300).Draw(h.T, "rtt")) * time.Millisecond, At: h.now}
	case 5:
		h.now = h.now.Add(time.Duration(rapid.SampledFrom([]int{10, 300, 500, 1000, 60_000}).Draw(h.T, "passes")) * time.Millisecond)
		return world.TimeAdvanced{Now: h.now}
	case 6:
		f := world.PoolFound{Pool: h.endpoint().Pool}
		for i := range rapid.IntRange(0, 3).Draw(h.T, "found") {
			f.Endpoints = append(f.Endpoints, world.FoundEndpoint{
				Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 80), Condition: rapid.SampledFrom([]world.Condition{world.Ready, world.Unready}).Draw(h.T, "condition")})
		}
		return f
	case 7:
		fit := rapid.SampledFrom([]int64{0, 1, 3, 1 << 40}).Draw(h.T, "fit")
		pool := h.endpoint().Pool
		return world.AcceleratorsCounted{Cluster: pool.Cluster, Accelerators: &world.Accelerators{}, Pools: []world.PoolReplicas{{Service: pool.Service, Fit: fit}}}
	}
	return world.ViewpointSeen{Viewpoint: viewpointOf(rapid.SampledFrom(h.set.Clusters).Draw(h.T, "viewpoint"))}
}

func (h *history) endpoint() world.EndpointKey {
	s := rapid.SampledFrom(h.set.Services).Draw(h.T, "service")
	if len(s.Spec.Pools) == 0 {
		return world.EndpointKey{}
	}
	p := rapid.SampledFrom(s.Spec.Pools).Draw(h.T, "pool")
	key := world.EndpointKey{Pool: world.PoolKey{Service: s.Metadata.Name, Cluster: p.Cluster}, Address: netip.MustParseAddrPort("10.0.0.0:80")}
	if len(p.Endpoints) > 0 {
		key.Address = rapid.SampledFrom(p.Endpoints).Draw(h.T, "endpoint").AddrPort()
	}
	return key
}

func (h *history) key() world.DemandKey {
	class := world.AnyClass
	if len(h.set.Residencies) > 0 && rapid.Bool().Draw(h.T, "pinned") {
		class = world.ClassOf([]policies.ResidencyName{rapid.SampledFrom(h.set.Residencies).Draw(h.T, "rule").Metadata.Name})
	}
	return world.DemandKey{
		Viewpoint: viewpointOf(rapid.SampledFrom(h.set.Clusters).Draw(h.T, "viewpoint")).ID(),
		Service:   rapid.SampledFrom(h.set.Services).Draw(h.T, "service").Metadata.Name, Class: class,
	}
}

// TestHistories plans random histories with one memo. At every step the plan is the one from scratch, and keeps every
// promise of the package.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{T: t, set: drawSet(t), now: start}
		var writer world.Writer
		var memo plan.Memo
		writer.Commit([]world.Fact{world.TimeAdvanced{Now: start}, world.PoliciesLoaded{Set: h.set}})
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "reload") == 0 {
				h.set = drawSet(t)
				writer.Commit([]world.Fact{world.PoliciesLoaded{Set: h.set}})
			}
			w, _ := writer.Commit(h.facts(6))
			p := plan.Compute(w, &memo)
			if diff := cmp.Diff(plan.Compute(w, nil), p); diff != "" {
				t.Fatalf("the plan depends on the memo (-from scratch +incremental):\n%s", diff)
			}
			if plan.Compute(w, &memo) != p {
				t.Fatal("the same world gave another pointer")
			}
			checkPromises(t, w, p)
			if rapid.IntRange(0, 3).Draw(t, "publish") > 0 {
				writer.Commit(published(p, w.Now()))
			}
		}
	})
}

func published(p *plan.Plan, now time.Time) []world.Fact {
	var facts []world.Fact
	for _, d := range p.Decisions {
		facts = append(facts, world.SharesPublished{Key: world.DemandKey{Viewpoint: d.Viewpoint, Service: d.Service, Class: d.Class}, Shares: d.Shares(), At: now})
	}
	return facts
}

func checkPromises(t *rapid.T, w *world.World, p *plan.Plan) {
	var services int
	for _, s := range w.Policies().Services {
		services += len(p.Admission.Classes(s.Metadata.Name))
	}
	if want := services * len(w.Viewpoints()); len(p.Decisions) != want {
		t.Fatalf("%d decisions, want %d", len(p.Decisions), want)
	}
	for _, d := range p.Decisions {
		checkOrder(t, d)
		checkBoundary(t, w.Policies(), d)
		checkMovement(t, w, d)
		if found, ok := p.Find(d.Viewpoint, d.Service, d.Class); !ok || found != d {
			t.Fatalf("Find does not find %+v", d)
		}
		if got, want := len(d.Choices), len(w.PoolsOf(d.Service)); got != want {
			t.Fatalf("%d choices for %d pools: %+v", got, want, d)
		}
	}
}

// checkOrder checks what every decision must be: shares that sum up, priorities without gaps, a reason for everything.
func checkOrder(t *rapid.T, d *plan.Decision) {
	var sum, next uint32
	permitted := false
	for i, c := range d.Choices {
		if len(c.Reasons) == 0 {
			t.Fatalf("no reason for %s in %+v", c.Cluster, d)
		}
		switch c.Role {
		case plan.Serving:
			sum += c.Share
			next = 1
			if c.Priority != 0 || c.Share == 0 || i > 0 && d.Choices[i-1].Role != plan.Serving {
				t.Fatalf("%s serves out of order in %+v", c.Cluster, d)
			}
		case plan.Standby:
			if c.Priority != next || c.Share != 0 {
				t.Fatalf("%s has priority %d, want %d, in %+v", c.Cluster, c.Priority, next, d)
			}
			next++
		default:
			if c.Share != 0 || c.Priority != 0 || i+1 < len(d.Choices) && d.Choices[i+1].Role != plan.Refused {
				t.Fatalf("%s is refused and yet placed in %+v", c.Cluster, d)
			}
		}
		permitted = permitted || c.Role != plan.Refused
	}
	if permitted && sum != world.ShareTotal {
		t.Fatalf("shares sum to %d in %+v", sum, d)
	}
}

// checkBoundary asks the rules again.
func checkBoundary(t *rapid.T, set *policies.Set, d *plan.Decision) {
	for _, name := range d.Class.Rules() {
		rule, _ := set.Residency(name)
		boundary := set.Boundary(rule)
		for _, c := range d.Choices {
			if c.Role != plan.Refused && !slices.Contains(boundary, c.Region) {
				t.Fatalf("%s is outside the boundary of %s, and %v in %+v", c.Cluster, name, c.Role, d)
			}
		}
	}
}

// checkMovement says that no more demand moves between clusters that may serve than the time allows: 20 % a second,
// unless the policy says otherwise, for one second at most, and nothing within half a second. Where there is no demand
// shares may move at will.
func checkMovement(t *rapid.T, w *world.World, d *plan.Decision) {
	inForce, ok := w.SharesInForce(world.DemandKey{Viewpoint: d.Viewpoint, Service: d.Service, Class: d.Class})
	if !ok || len(inForce.Shares) == 0 {
		return
	}
	if !slices.ContainsFunc(w.DemandFor(d.Service), func(of world.DemandOf) bool {
		return of.Key.Viewpoint == d.Viewpoint && of.Key.Class == d.Class && of.Demand.InFlight > 0
	}) {
		return
	}
	best := bestCondition(w, d)
	var left uint32
	for _, s := range inForce.Shares {
		if c, ok := d.Choice(s.Cluster); ok && c.Role != plan.Refused && condition(w, d.Service, c) == best {
			left += s.Parts - min(s.Parts, c.Share)
		}
	}
	elapsed := min(w.Now().Sub(inForce.At), time.Second)
	if elapsed < 500*time.Millisecond {
		elapsed = 0
	}
	// In hundredths of a part times nanoseconds, to be exact.
	allowed := int64(w.Policies().TrafficFor(d.Service).Spill.MaxShiftPerSecond) * int64(elapsed) * world.ShareTotal
	if best < 4 && int64(left)*100*int64(time.Second) > allowed {
		t.Fatalf("%d parts moved after %v, in %+v from %+v", left, elapsed, d, inForce)
	}
}

// condition orders what may be known of a pool: healthy, unknown, unhealthy, and each a little worse when drained.
func condition(w *world.World, service policies.ServiceName, c *plan.Choice) int {
	s, _ := w.Policies().Service(service)
	h := w.Pool(world.PoolKey{Service: service, Cluster: c.Cluster}).Headroom(s.Spec.Capacity)
	site, _ := w.Policies().Cluster(c.Cluster)
	worse := 0
	if site.Spec.Drain {
		worse = 1
	}
	switch {
	case h.Healthy > 0:
		return worse
	case h.Unknown > 0:
		return 2 + worse
	}
	return 4 + worse
}

func bestCondition(w *world.World, d *plan.Decision) int {
	best := 6
	for i := range d.Choices {
		if d.Choices[i].Role != plan.Refused {
			best = min(best, condition(w, d.Service, &d.Choices[i]))
		}
	}
	return best
}

// TestFactOrder says that facts about different things give the same plan in any order.
func TestFactOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := drawSet(t)
		facts := opening(set)[2:]
		for i, s := range set.Services {
			for j, c := range set.Clusters {
				key := world.DemandKey{Viewpoint: viewpointOf(c).ID(), Service: s.Metadata.Name, Class: world.AnyClass}
				facts = append(facts, world.DemandSeen{Key: key, Demand: world.Demand{InFlight: float64(5*i + 7*j), At: start}})
			}
		}
		shuffled := rapid.Permutation(facts).Draw(t, "shuffled")
		if diff := cmp.Diff(planOf(set, facts), planOf(set, shuffled)); diff != "" {
			t.Fatalf("the order of facts matters (-sorted +shuffled):\n%s", diff)
		}
	})
}

func planOf(set *policies.Set, facts []world.Fact) *plan.Plan {
	var writer world.Writer
	writer.Commit([]world.Fact{world.TimeAdvanced{Now: start}, world.PoliciesLoaded{Set: set}})
	w, _ := writer.Commit(facts)
	return plan.Compute(w, nil)
}

// TestAdmissionAgreesWithRules asks the rules one by one what Admission says at once.
func TestAdmissionAgreesWithRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := drawSet(t)
		admission := planOf(set, nil).Admission
		service := rapid.SampledFrom(set.Services).Draw(t, "service").Metadata.Name
		country := rapid.SampledFrom([]geo.Country{"", "DE", "FR", "US", "BR"}).Draw(t, "country")
		tenant := rapid.SampledFrom([]policies.Tenant{"", "acme", "bank", "else"}).Draw(t, "tenant")
		label := rapid.SampledFrom([]policies.DataLabel{"", "pii", "health", "else"}).Draw(t, "label")
		got := admission.Admit(service, country, tenant, label)
		bound, unlocated := bindingRules(set, service, country, tenant, label)
		boundary := map[policies.RegionName]int{}
		for _, rule := range bound {
			r, _ := set.Residency(rule)
			for _, region := range set.Boundary(r) {
				boundary[region]++
			}
		}
		inside := slices.ContainsFunc(set.Regions, func(r policies.Region) bool { return boundary[r.Metadata.Name] == len(bound) })
		want := plan.Outcome{Service: service, Country: got.Country, Tenant: got.Tenant, Label: got.Label}
		switch {
		case len(unlocated) > 0:
			want.Refusal = &plan.Reason{Code: plan.UnknownLocation, Policies: unlocated}
		case !inside:
			want.Refusal = &plan.Reason{Code: plan.NoPermittedRegion, Policies: bound}
		default:
			want.Class = world.ClassOf(bound)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("outcome (-by the rules +by Admission):\n%s", diff)
		}
	})
}

func bindingRules(set *policies.Set, service policies.ServiceName, country geo.Country, tenant policies.Tenant, label policies.DataLabel) (bound, unlocated []policies.ResidencyName) {
	for _, r := range set.Residencies {
		m := r.Spec.Match
		if len(m.Tenants) > 0 && !slices.Contains(m.Tenants, tenant) || len(m.Labels) > 0 && !slices.Contains(m.Labels, label) ||
			len(m.Services) > 0 && !slices.Contains(m.Services, service) {
			continue
		}
		switch name := r.Metadata.Name; {
		case len(m.Countries) == 0, m.CountrySet.Contains(country), country == "" && r.Spec.UnknownLocation == policies.UnknownPin:
			bound = append(bound, name)
		case country == "" && r.Spec.UnknownLocation == policies.UnknownRefuse:
			unlocated = append(unlocated, name)
		}
	}
	return bound, unlocated
}
