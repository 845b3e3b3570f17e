package pipeline

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

const frankfurt = world.ViewpointID("gateway/frankfurt/fra-1")

// last is what was published last.
func (s *stage) last() *xds.Snapshot { return s.out[len(s.out)-1].snapshot }

// reload puts a variant of the example in force.
func (s *stage) reload(t *testing.T, change func(*policies.Set)) {
	t.Helper()
	set := *s.State().World.Policies()
	set.Hash += "'"
	change(&set)
	s.SetPolicies(&set)
	time.Sleep(time.Second)
	synctest.Wait()
}

// onPort moves the gateway's listener.
func onPort(port uint16) func(*policies.Set) {
	return func(set *policies.Set) {
		set.Gateways = slices.Clone(set.Gateways)
		set.Gateways[0].Spec.Listeners = slices.Clone(set.Gateways[0].Spec.Listeners)
		set.Gateways[0].Spec.Listeners[0].Port = port
	}
}

// refuse says that the proxies refused the listener of what was published last, and have good instead.
func (s *stage) refuse(good *xds.Snapshot) {
	tried := s.last()
	var bad []*xds.Resource
	for r := range tried.Of(xds.TypeListener).All() {
		if strings.HasPrefix(r.Name, "edge/") {
			bad = append(bad, r)
		}
	}
	s.Refuse(frankfurt, Refusal{Good: good, Tried: tried, Refused: bad, Proxy: "p", Reason: "no", At: time.Now()})
	time.Sleep(time.Second)
	synctest.Wait()
}

func TestWhatProxiesRefusedIsWithheldWhileEndpointsGoOn(t *testing.T) {
	run(t, func(s *stage) {
		s.probe("", 2)
		good := s.last()
		s.reload(t, onPort(9090))
		if s.last().Version(xds.TypeListener) == good.Version(xds.TypeListener) {
			t.Fatal("another port makes no other listener")
		}
		s.refuse(good)
		if !sameStructure(s.last(), good) {
			t.Fatal("the last good structure is not published again")
		}
		if r, ok := s.State().Withheld[frankfurt]; !ok || r.Proxy != "p" {
			t.Errorf("withheld: %+v", s.State().Withheld)
		}
		before := s.last()
		s.probe("fra-1", 3)
		if !sameStructure(s.last(), good) || s.last().Version(xds.TypeEndpoint) == before.Version(xds.TypeEndpoint) {
			t.Error("a server died, and endpoints did not change under the good structure")
		}
		settled := len(s.out)
		s.probe("fra-1", 3)
		if len(s.out) != settled {
			t.Errorf("%d snapshots were published though nothing changed", len(s.out)-settled)
		}
		s.reload(t, onPort(7070))
		if sameStructure(s.last(), good) || len(s.State().Withheld) > 0 {
			t.Error("a world without what was refused is not tried")
		}
	})
}

func TestRefusalEndsWhenTheWorldGoesBack(t *testing.T) {
	run(t, func(s *stage) {
		good := s.last()
		s.reload(t, onPort(9090))
		s.refuse(good)
		s.reload(t, onPort(8080))
		if !sameStructure(s.last(), good) || len(s.State().Withheld) > 0 {
			t.Errorf("withheld: %+v", s.State().Withheld)
		}
	})
}

// What was good may have become wrong: then nothing is published, and the operator is told.
func TestGoodStructureIsVerifiedAgainstTheWorldOfNow(t *testing.T) {
	run(t, func(s *stage) {
		good := s.last()
		s.reload(t, func(set *policies.Set) {
			onPort(9090)(set)
			set.Residencies = slices.Clone(set.Residencies)
			for i := range set.Residencies { // who was bound to the European Union now is to Virginia's country
				if set.Residencies[i].Metadata.Name == "eu-people" {
					set.Residencies[i].Spec.Within = []string{"US"}
				}
			}
		})
		published := len(s.out)
		s.refuse(good)
		if len(s.out) != published || len(s.State().Refused[frankfurt]) == 0 {
			t.Errorf("%d more were published, violations %v", len(s.out)-published, s.State().Refused[frankfurt])
		}
	})
}

func TestEndpointsThatWereRefusedKeepTheirLastGoodVersion(t *testing.T) {
	run(t, func(s *stage) {
		s.probe("", 2)
		good := s.last()
		s.probe("fra-1", 3)
		pool := xds.PoolCluster(world.PoolKey{Service: "llama", Cluster: "fra-1"})
		bad := s.last().Resource(xds.TypeEndpoint, pool)
		s.Refuse(frankfurt, Refusal{Good: good, Tried: s.last(), Refused: []*xds.Resource{bad}})
		time.Sleep(time.Second)
		synctest.Wait()
		if got := s.last().Resource(xds.TypeEndpoint, pool); got.Version != good.Resource(xds.TypeEndpoint, pool).Version {
			t.Errorf("the refused assignment is published again: %s", got.Version)
		}
	})
}
