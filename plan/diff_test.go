package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

func TestDiff(t *testing.T) {
	s := simulate(t, append([]string{doc("Residency", "german", "{match: {countries: [DE]}, within: [DE]}")}, places...)...)
	s.judgeAll()
	fra := s.see("fra-1")
	before := s.compute()
	if changes := plan.Diff(before, before); changes != nil {
		t.Errorf("a plan differs from itself by %+v", changes)
	}
	s.judge("llama", "fra-1", 0, world.Unhealthy)
	unhealthy := []plan.Reason{{Code: plan.Unhealthy, Total: 1}, {Code: plan.Failover}}
	nearest := []plan.Reason{{Code: plan.Nearest}}
	dub, iad := choiceOf(t, before, fra, "any", "dub-1"), choiceOf(t, before, fra, "any", "iad-1")
	after := s.compute()
	dubAfter, iadAfter := choiceOf(t, after, fra, "any", "dub-1"), choiceOf(t, after, fra, "any", "iad-1")
	want := []plan.Change{
		{Viewpoint: fra, Service: "llama", Class: "any", Before: plan.Served, After: plan.Served, Clusters: []plan.ClusterChange{
			{"dub-1", &plan.Position{plan.Standby, 1, 0, dub.Reasons}, &plan.Position{plan.Serving, 0, world.ShareTotal, dubAfter.Reasons}},
			{"fra-1", &plan.Position{plan.Serving, 0, world.ShareTotal, nearest}, &plan.Position{plan.Standby, 2, 0, unhealthy}},
			{"iad-1", &plan.Position{plan.Standby, 2, 0, iad.Reasons}, &plan.Position{plan.Standby, 1, 0, iadAfter.Reasons}},
		}},
		// Nothing moves for the pinned class: it is refused where it is.
		{Viewpoint: fra, Service: "llama", Class: "german", Before: plan.Served, After: plan.ResidencyRefused},
	}
	if diff := cmp.Diff(want, plan.Diff(before, after)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	s.see("dub-1")
	for _, c := range plan.Diff(after, s.compute()) {
		if c.Before != plan.Absent || c.After == plan.Absent {
			t.Errorf("a new viewpoint is %s, then %s", c.Before, c.After)
		}
	}
}

func choiceOf(t *testing.T, p *plan.Plan, v world.ViewpointID, class world.ClassID, cluster policies.ClusterName) *plan.Choice {
	t.Helper()
	d, ok := p.Find(v, "llama", class)
	if !ok {
		t.Fatalf("no decision for %s", class)
	}
	c, ok := d.Choice(cluster)
	if !ok {
		t.Fatalf("no choice for %s", cluster)
	}
	return c
}

// TestUnchangedKeepsPointers says that decisions of a service that did not change are the same pointers, and so is the
// plan when nothing did.
func TestUnchangedKeepsPointers(t *testing.T) {
	s := simulate(t, places...)
	s.judgeAll()
	fra := s.see("fra-1")
	before := s.compute()
	if s.advance(1); s.compute() != before {
		t.Error("time alone made a new plan")
	}
	s.judge("licensed", "iad-1", 0, world.Unhealthy)
	after := s.compute()
	for service, same := range map[policies.ServiceName]bool{"llama": true, "licensed": false} {
		a, _ := before.Find(fra, service, "any")
		b, _ := after.Find(fra, service, "any")
		if (a == b) != same {
			t.Errorf("%s: same pointer %v, want %v", service, a == b, same)
		}
	}
	if n := len(after.From(fra)); n != 2 {
		t.Errorf("%d decisions from %s, want 2", n, fra)
	}
}

func TestBeforePolicies(t *testing.T) {
	var writer world.Writer
	p := plan.Compute(writer.Current(), nil)
	if p.Admission == nil || p.Decisions != nil || !p.NextAt.IsZero() {
		t.Errorf("the plan of an empty world is %+v", p)
	}
	if got := p.Admission.Admit("llama", "DE", "", ""); got.Class != "" || got.Refusal != nil {
		t.Errorf("a service that no policy names has outcome %+v", got)
	}
}
