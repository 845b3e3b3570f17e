package build

import (
	"fmt"
	"slices"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// Memo keeps what was built, so that what has not changed is the same pointer again. The zero value is ready.
type Memo struct {
	set       *policies.Set
	admission *plan.Admission

	frames    map[world.ViewpointID][]*xds.Resource // what follows from policies and admission alone
	pools     map[*world.Pool]*xds.Resource
	classes   map[*plan.Decision]*classEndpoints
	snapshots map[world.ViewpointID]*xds.Snapshot
}

// Build makes the snapshot of every viewpoint that a Gateway policy selects, sorted by viewpoint. With a memo, a snapshot
// in which nothing changed is the same pointer as before. An error is a defect of Meridian or of its input that Parse
// should have refused; nothing is built then.
func Build(w *world.World, p *plan.Plan, memo *Memo) ([]*xds.Snapshot, error) {
	if memo == nil {
		memo = &Memo{}
	}
	if w.Policies() == nil {
		return nil, nil
	}
	memo.start(w.Policies(), p.Admission)
	next := Memo{pools: map[*world.Pool]*xds.Resource{}, classes: map[*plan.Decision]*classEndpoints{}, snapshots: map[world.ViewpointID]*xds.Snapshot{}}
	var snapshots []*xds.Snapshot
	for _, v := range w.Viewpoints() {
		gateway, selected := w.Policies().GatewayFor(v.Role, v.Region, v.Cluster)
		if !selected {
			continue
		}
		b := &builder{world: w, plan: p, set: w.Policies(), viewpoint: v, gateway: gateway, memo: memo, next: &next}
		s, err := b.snapshot()
		if err != nil {
			return nil, fmt.Errorf("build configuration for %s: %w", v.ID(), err)
		}
		snapshots = append(snapshots, s)
	}
	memo.pools, memo.classes, memo.snapshots = next.pools, next.classes, next.snapshots
	return snapshots, nil
}

// start forgets what no longer follows from its input.
func (m *Memo) start(set *policies.Set, admission *plan.Admission) {
	if m.set == set && m.admission == admission {
		return
	}
	// Endpoints of classes depend on more than their decision where policies change, so all goes.
	*m = Memo{set: set, admission: admission, frames: map[world.ViewpointID][]*xds.Resource{}, pools: m.pools, snapshots: m.snapshots}
}

// builder builds one viewpoint's snapshot.
type builder struct {
	world     *world.World
	plan      *plan.Plan
	set       *policies.Set
	viewpoint world.Viewpoint
	gateway   *policies.Gateway
	memo      *Memo
	next      *Memo
}

// snapshot puts together what follows from policies, and the endpoints as they are now.
func (b *builder) snapshot() (*xds.Snapshot, error) {
	id := b.viewpoint.ID()
	frame, ok := b.memo.frames[id]
	if !ok {
		var err error
		if frame, err = b.frame(); err != nil {
			return nil, err
		}
		b.memo.frames[id] = frame
	}
	endpoints, err := b.endpoints()
	if err != nil {
		return nil, err
	}
	s := xds.NewSnapshot(id, slices.Concat(frame, endpoints))
	if before := b.memo.snapshots[id]; before != nil && sameVersions(before, s) {
		s = before
	}
	b.next.snapshots[id] = s
	return s, nil
}

func sameVersions(a, b *xds.Snapshot) bool {
	return !slices.ContainsFunc(xds.Types(), func(t xds.Type) bool { return a.Version(t) != b.Version(t) })
}

// frame builds everything but endpoints.
func (b *builder) frame() ([]*xds.Resource, error) {
	c := &collector{}
	b.secrets(c)
	b.edge(c)
	b.hops(c)
	b.classClusters(c)
	b.poolClusters(c)
	b.gatewayClusters(c)
	b.eastWest(c)
	b.geoService(c)
	return c.resources, c.err
}

// endpoints builds the assignments of class clusters and of the pools that are dialled from here.
func (b *builder) endpoints() ([]*xds.Resource, error) {
	c := &collector{}
	for _, d := range b.plan.From(b.viewpoint.ID()) {
		b.classAssignment(c, d)
	}
	for _, pool := range b.dialled() {
		b.poolAssignment(c, pool)
	}
	return c.resources, c.err
}

// here says whether a cluster is the viewpoint's own.
func (b *builder) here(cluster policies.ClusterName) bool { return cluster == b.viewpoint.Cluster }

// direct says whether a cluster's endpoints are dialled from here: because it is here, or because it has no gateways.
func (b *builder) direct(cluster policies.ClusterName) bool {
	c, ok := b.set.Cluster(cluster)
	return ok && (b.here(cluster) || len(c.Spec.Gateways) == 0)
}

// reachable says whether requests can leave for a cluster from here: directly, or with an identity for its gateways.
func (b *builder) reachable(cluster policies.ClusterName) bool {
	return b.direct(cluster) || b.gateway.Spec.EastWest != nil
}

// dialled are the pools whose endpoints are dialled from here, sorted by key.
func (b *builder) dialled() []*world.Pool {
	var pools []*world.Pool
	for _, p := range b.world.Pools() {
		if b.direct(p.Key.Cluster) {
			pools = append(pools, p)
		}
	}
	return pools
}

// members are the clusters that requests may be sent to from here, sorted.
func (b *builder) members() []policies.ClusterName {
	var members []policies.ClusterName
	for _, c := range b.set.Clusters {
		if b.reachable(c.Metadata.Name) {
			members = append(members, c.Metadata.Name)
		}
	}
	return members
}
