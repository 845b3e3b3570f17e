package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// parse reads policies written without what every document repeats: documents open with "Kind name:".
func parse(t testing.TB, documents ...string) *policies.Set {
	t.Helper()
	set, diagnostics := policies.Parse([]policies.File{{Name: "test.yaml", Bytes: []byte(strings.Join(documents, "\n---\n"))}})
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	return set
}

// doc is one policy document; spec is YAML in flow or block style.
func doc(kind, name, spec string) string {
	return fmt.Sprintf("apiVersion: meridian.dev/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec:\n  %s\n", kind, name, strings.ReplaceAll(spec, "\n", "\n  "))
}

// start is when every test's world begins.
var start = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// simulation is a world under way, with its planner: what the loop of a control plane does, without it.
type simulation struct {
	t      testing.TB
	writer world.Writer
	world  *world.World
	memo   plan.Memo
	plan   *plan.Plan
}

func simulate(t testing.TB, documents ...string) *simulation {
	t.Helper()
	s := &simulation{t: t}
	s.commit(world.TimeAdvanced{Now: start}, world.PoliciesLoaded{Set: parse(t, documents...)})
	return s
}

// worldOf is a world in which policies have just been loaded.
func worldOf(t testing.TB, documents []string) *world.World {
	t.Helper()
	return simulate(t, documents...).world
}

func (s *simulation) commit(facts ...world.Fact) { s.world, _ = s.writer.Commit(facts) }

// see connects a gateway of a cluster, and says which viewpoint it has.
func (s *simulation) see(cluster policies.ClusterName) world.ViewpointID {
	s.t.Helper()
	region, ok := s.world.RegionOf(cluster)
	if !ok {
		s.t.Fatalf("no cluster %q", cluster)
	}
	v := world.Viewpoint{Role: policies.RoleGateway, Region: region, Cluster: cluster}
	s.commit(world.ViewpointSeen{Viewpoint: v})
	return v.ID()
}

// judge gives the first healthy endpoints of a pool the verdict Healthy, and the rest another.
func (s *simulation) judge(service policies.ServiceName, cluster policies.ClusterName, healthy int, rest world.Verdict) {
	s.t.Helper()
	key := world.PoolKey{Service: service, Cluster: cluster}
	pool := s.world.Pool(key)
	if pool == nil {
		s.t.Fatalf("no pool %v", key)
	}
	for i, e := range pool.Endpoints {
		health := world.Health{Verdict: rest}
		if i < healthy {
			health.Verdict = world.Healthy
		}
		s.commit(world.EndpointJudged{Endpoint: world.EndpointKey{Pool: key, Address: e.Address}, Health: health})
	}
}

// judgeAll makes every endpoint of every pool healthy.
func (s *simulation) judgeAll() {
	for _, p := range s.world.Pools() {
		s.judge(p.Key.Service, p.Key.Cluster, len(p.Endpoints), world.Unhealthy)
	}
}

// want says how many requests of a key are in flight.
func (s *simulation) want(v world.ViewpointID, service policies.ServiceName, class world.ClassID, inFlight float64) {
	key := world.DemandKey{Viewpoint: v, Service: service, Class: class}
	s.commit(world.DemandSeen{Key: key, Demand: world.Demand{InFlight: inFlight, At: s.world.Now()}})
}

// compute plans with the memo, and checks that planning from scratch gives the same.
func (s *simulation) compute() *plan.Plan {
	s.t.Helper()
	s.plan = plan.Compute(s.world, &s.memo)
	if diff := cmp.Diff(plan.Compute(s.world, nil), s.plan); diff != "" {
		s.t.Fatalf("the plan depends on the memo (-from scratch +incremental):\n%s", diff)
	}
	return s.plan
}

// publish puts the shares of the last plan in force, as the loop does for decisions that changed.
func (s *simulation) publish() {
	for _, d := range s.plan.Decisions {
		key := world.DemandKey{Viewpoint: d.Viewpoint, Service: d.Service, Class: d.Class}
		if inForce, ok := s.world.SharesInForce(key); !ok || !slices.Equal(inForce.Shares, d.Shares()) {
			s.commit(world.SharesPublished{Key: key, Shares: d.Shares(), At: s.world.Now()})
		}
	}
}

// advance moves the clock.
func (s *simulation) advance(d time.Duration) {
	s.commit(world.TimeAdvanced{Now: s.world.Now().Add(d)})
}
