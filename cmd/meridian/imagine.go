package main

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/policies/folder"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/build"
	"github.com/meridian-mesh/meridian/xds/verify"
)

// imagined is a world that is made of policies alone: a proxy wherever a Gateway selects one, every endpoint healthy
// unless it is said to have failed.
type imagined struct {
	writer world.Writer
	set    *policies.Set
	now    time.Time
}

// imagine makes the world of a policy set.
func imagine(set *policies.Set) *imagined {
	i := &imagined{set: set, now: time.Unix(0, 0).UTC()}
	facts := []world.Fact{world.TimeAdvanced{Now: i.now}, world.PoliciesLoaded{Set: set}}
	for _, c := range set.Clusters {
		for _, role := range []policies.Role{policies.RoleGateway, policies.RoleSidecar} {
			if _, ok := set.GatewayFor(role, c.Spec.Region, c.Metadata.Name); ok {
				facts = append(facts, world.ViewpointSeen{Viewpoint: world.Viewpoint{Role: role, Region: c.Spec.Region, Cluster: c.Metadata.Name}})
			}
		}
	}
	i.writer.Commit(facts)
	i.writer.Commit(i.stood())
	i.judge(func(policies.ClusterName) world.Verdict { return world.Healthy })
	return i
}

// stood has one endpoint stand for those of each pool that is read from its cluster, which nobody asks here. Its address is one
// that leads nowhere (RFC 6666).
func (i *imagined) stood() []world.Fact {
	var facts []world.Fact
	for n, pool := range i.writer.Current().Pools() {
		if !pool.Found {
			nowhere := netip.AddrFrom16([16]byte{0: 1, 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)})
			facts = append(facts, world.PoolFound{Pool: pool.Key, Endpoints: []world.FoundEndpoint{{Address: netip.AddrPortFrom(nowhere, 1), Condition: world.Ready}}})
		}
	}
	return facts
}

// imagineFolder makes the world of a folder of policy files.
func imagineFolder(dir string) (*imagined, error) {
	set, err := folder.Load(dir)
	if err != nil {
		return nil, err
	}
	return imagine(set), nil
}

// judge gives every endpoint the verdict of its cluster.
func (i *imagined) judge(verdict func(policies.ClusterName) world.Verdict) {
	var facts []world.Fact
	for _, pool := range i.writer.Current().Pools() {
		for _, e := range pool.Endpoints {
			facts = append(facts, world.EndpointJudged{Endpoint: world.EndpointKey{Pool: pool.Key, Address: e.Address},
				Health: world.Health{Verdict: verdict(pool.Key.Cluster), Since: i.now, At: i.now}})
		}
	}
	i.writer.Commit(facts)
}

// fail makes clusters fail, and those of regions.
func (i *imagined) fail(clusters, regions []string) error {
	for _, name := range clusters {
		if _, ok := i.set.Cluster(policies.ClusterName(name)); !ok {
			return usage("there is no cluster %q", name)
		}
	}
	for _, name := range regions {
		if _, ok := i.set.Region(policies.RegionName(name)); !ok {
			return usage("there is no region %q", name)
		}
	}
	i.judge(func(c policies.ClusterName) world.Verdict {
		region, _ := i.writer.Current().RegionOf(c)
		if slices.Contains(clusters, string(c)) || slices.Contains(regions, string(region)) {
			return world.Unhealthy
		}
		return world.Healthy
	})
	return nil
}

// mostSteps bounds how long shares may move until they are settled.
const mostSteps = 200

// settle plans until nothing moves any more: what follows in the end, not in the first second.
func (i *imagined) settle() *plan.Plan {
	var memo plan.Memo
	p := plan.Compute(i.writer.Current(), &memo)
	for range mostSteps {
		var facts []world.Fact
		for _, d := range p.Decisions {
			facts = append(facts, world.SharesPublished{Key: world.DemandKey{Viewpoint: d.Viewpoint, Service: d.Service, Class: d.Class}, Shares: d.Shares(), At: i.now})
		}
		i.writer.Commit(facts)
		if p.NextAt.IsZero() {
			break
		}
		i.now = p.NextAt
		i.writer.Commit([]world.Fact{world.TimeAdvanced{Now: i.now}})
		p = plan.Compute(i.writer.Current(), &memo)
	}
	return p
}

// violations plans, builds and verifies.
func (i *imagined) violations() ([]verify.Violation, error) {
	w := i.writer.Current()
	snapshots, err := build.Build(w, plan.Compute(w, nil), nil)
	if err != nil {
		return nil, fmt.Errorf("build the configuration: %w", err)
	}
	var violations []verify.Violation
	for _, s := range snapshots {
		violations = append(violations, verify.Check(w, s)...)
	}
	return violations, nil
}
