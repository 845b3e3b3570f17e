package pipeline

import (
	"context"
	"net/netip"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// published is one snapshot that came out, and when.
type published struct {
	snapshot *xds.Snapshot
	after    time.Duration
}

// stage runs a pipeline in fake time and collects what it publishes.
type stage struct {
	*Pipeline
	began time.Time
	out   []published
}

func example(t *testing.T) *policies.Set {
	t.Helper()
	bytes, err := os.ReadFile("../../policies/examples/eu-pinned.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, diagnostics := policies.Parse([]policies.File{{Name: "eu-pinned.yaml", Bytes: bytes}})
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	return set
}

// run plays a story in a bubble of fake time.
func run(t *testing.T, story func(*stage)) {
	set := example(t)
	synctest.Test(t, func(t *testing.T) {
		s := &stage{began: time.Now()}
		var err error
		s.Pipeline, err = New(Config{Publish: func(snapshot *xds.Snapshot, _ time.Time) {
			s.out = append(s.out, published{snapshot, time.Since(s.began)})
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		s.SetPolicies(set) // before it runs, so that all is one batch
		s.SeeViewpoint(world.Viewpoint{Role: policies.RoleGateway, Region: "frankfurt", Cluster: "fra-1"})
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		story(s)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// endpoint is a server of the example in a cluster.
func (s *stage) endpoint(cluster policies.ClusterName) world.EndpointKey {
	key := world.PoolKey{Service: "llama", Cluster: cluster}
	return world.EndpointKey{Pool: key, Address: s.State().World.Pool(key).Endpoints[0].Address}
}

// probe hands in outcomes of probes of every server, half a second apart: all are well but those of one cluster.
func (s *stage) probe(down policies.ClusterName, times int) {
	for range times {
		for _, pool := range s.State().World.Pools() {
			for _, e := range pool.Endpoints {
				s.Signal(health.Probed{Endpoint: world.EndpointKey{Pool: pool.Key, Address: e.Address}, OK: pool.Key.Cluster != down, Cause: "test", At: time.Now()})
			}
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
	}
}

func TestFirstChangeIsPublishedAtOnce(t *testing.T) {
	run(t, func(s *stage) {
		if len(s.out) != 1 || s.out[0].after != 0 || s.out[0].snapshot.Viewpoint != "gateway/frankfurt/fra-1" {
			t.Errorf("published %v", s.out)
		}
	})
}

func TestHealthMovesTheClassAndWhatDoesNotChangeIsNotPublished(t *testing.T) {
	run(t, func(s *stage) {
		s.probe("", 2)
		settled := len(s.out)
		s.probe("", 6) // still healthy: nothing to say
		if len(s.out) != settled {
			t.Errorf("%d snapshots were published though nothing changed", len(s.out)-settled)
		}
		before := s.out[len(s.out)-1].snapshot
		s.probe("fra-1", 2)
		after := s.out[len(s.out)-1].snapshot
		for _, name := range []string{xds.ClassCluster("llama", "eu-people"), xds.PoolCluster(world.PoolKey{Service: "llama", Cluster: "fra-1"})} {
			if before.Resource(xds.TypeEndpoint, name).Version == after.Resource(xds.TypeEndpoint, name).Version {
				t.Errorf("%s did not change when fra-1 failed", name)
			}
		}
		for _, typ := range []xds.Type{xds.TypeListener, xds.TypeRoute, xds.TypeCluster} {
			if before.Version(typ) != after.Version(typ) {
				t.Errorf("%s changed with an endpoint's health", typ.Short())
			}
		}
		d, ok := s.State().Plan.Find("gateway/frankfurt/fra-1", "llama", "eu-people")
		if !ok || d.Choices[0].Cluster != "dub-1" {
			t.Errorf("decision %+v", d)
		}
	})
}

func TestStreamOfChangesIsMerged(t *testing.T) {
	run(t, func(s *stage) {
		s.probe("", 2)
		began, up := len(s.out), false
		// Each outcome changes the pool's verdict from known to known: thresholds are 2, so two of a kind do.
		for range 500 {
			up = !up
			for range 2 {
				s.Signal(health.Probed{Endpoint: s.endpoint("fra-1"), OK: up, Cause: "test", At: time.Now()})
				time.Sleep(time.Millisecond)
			}
		}
		synctest.Wait()
		if n := len(s.out) - began; n > 60 {
			t.Errorf("%d snapshots in a second of changes", n)
		}
	})
}

func TestUnknownThingsAreTakenQuietly(t *testing.T) {
	run(t, func(s *stage) {
		cycle := s.State().Cycle
		s.Signal(health.Probed{Endpoint: world.EndpointKey{Pool: world.PoolKey{Service: "none", Cluster: "fra-1"}, Address: netip.MustParseAddrPort("127.9.9.9:1")}, At: time.Now()})
		s.SeeViewpoint(world.Viewpoint{Role: policies.RoleSidecar, Region: "frankfurt", Cluster: "fra-1"}) // no Gateway selects it
		time.Sleep(time.Second)
		synctest.Wait()
		if len(s.out) != 1 || len(s.State().Refused) > 0 || s.State().BuildError != nil {
			t.Errorf("after cycle %d: published %d, refused %v, %v", cycle, len(s.out), s.State().Refused, s.State().BuildError)
		}
	})
}

func TestReloadedPoliciesAreBuiltAndVerifiedAnew(t *testing.T) {
	run(t, func(s *stage) {
		before := s.State()
		set := *before.World.Policies()
		set.Hash = "another"
		set.Residencies = slices.Clone(set.Residencies)[:1]
		s.SetPolicies(&set)
		time.Sleep(time.Second)
		synctest.Wait()
		if s.State().World.Policies() != &set || s.State().Plan.Admission == before.Plan.Admission {
			t.Error("the new policies are not in force")
		}
	})
}
