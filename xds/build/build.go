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

	frames    map[world.ViewpointID]*frame
	pools     []poolEndpoints // by place in World.Pools
	snapshots map[world.ViewpointID]made
}

// frame is what follows from policies and admission alone.
type frame struct {
	resources []*xds.Resource
	// dialled are the pools whose endpoints are dialled from the viewpoint, by place in World.Pools, which is the same while policies are.
	dialled []int
}

// made is a snapshot and the parts that it was made of.
type made struct {
	frame     *frame
	decisions []*plan.Decision
	classes   []*classEndpoints // by place in decisions; nil where a decision has none
	endpoints []*xds.Resource
	snapshot  *xds.Snapshot
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
	memo.align(w.Pools())
	made := make(map[world.ViewpointID]made, len(memo.snapshots))
	var snapshots []*xds.Snapshot
	for _, v := range w.Viewpoints() {
		gateway, selected := w.Policies().GatewayFor(v.Role, v.Region, v.Cluster)
		if !selected {
			continue
		}
		b := &builder{world: w, plan: p, set: w.Policies(), viewpoint: v, gateway: gateway, memo: memo, made: made}
		s, err := b.snapshot()
		if err != nil {
			return nil, fmt.Errorf("build configuration for %s: %w", v.ID(), err)
		}
		snapshots = append(snapshots, s)
	}
	memo.snapshots = made
	return snapshots, nil
}

// start forgets what no longer follows from its input.
func (m *Memo) start(set *policies.Set, admission *plan.Admission) {
	if m.set == set && m.admission == admission {
		return
	}
	// Endpoints of classes depend on more than their decision where policies change, so all goes.
	*m = Memo{set: set, admission: admission, frames: map[world.ViewpointID]*frame{}, pools: m.pools, snapshots: m.snapshots}
}

// align has an entry for each pool of a world. What was made of pools that are the same is kept, wherever they stand.
func (m *Memo) align(pools []*world.Pool) {
	if slices.EqualFunc(m.pools, pools, func(made poolEndpoints, p *world.Pool) bool { return made.pool == p || made.pool.Key == p.Key }) {
		for i, p := range pools {
			if m.pools[i].pool != p {
				m.pools[i] = poolEndpoints{pool: p}
			}
		}
		return
	}
	known := make(map[*world.Pool]poolEndpoints, len(m.pools))
	for _, made := range m.pools {
		known[made.pool] = made
	}
	m.pools = make([]poolEndpoints, len(pools))
	for i, p := range pools {
		m.pools[i] = poolEndpoints{p, known[p].resource}
	}
}

// builder builds one viewpoint's snapshot.
type builder struct {
	world     *world.World
	plan      *plan.Plan
	set       *policies.Set
	viewpoint world.Viewpoint
	gateway   *policies.Gateway
	memo      *Memo
	made      map[world.ViewpointID]made
	dims      [3]dimension // only while a frame is built
}

// snapshot puts together what follows from policies, and the endpoints as they are now. Where both are what they were, so
// is the snapshot.
func (b *builder) snapshot() (*xds.Snapshot, error) {
	id := b.viewpoint.ID()
	f, ok := b.memo.frames[id]
	if !ok {
		var err error
		if f, err = b.frame(); err != nil {
			return nil, err
		}
		b.memo.frames[id] = f
	}
	before, now := b.memo.snapshots[id], made{frame: f, decisions: b.plan.From(id)}
	if err := b.endpoints(&before, &now); err != nil {
		return nil, err
	}
	switch {
	case before.frame == f && slices.Equal(before.endpoints, now.endpoints):
		now.snapshot = before.snapshot
	case before.frame == f:
		now.snapshot = before.snapshot.With(replaced(before.endpoints, now.endpoints))
	default:
		now.snapshot = xds.NewSnapshot(id, slices.Concat(f.resources, now.endpoints))
	}
	if before.snapshot != nil && sameVersions(before.snapshot, now.snapshot) {
		now.snapshot = before.snapshot
	}
	b.made[id] = now
	return now.snapshot, nil
}

// replaced compares two lists of resources of one type: what is to be put in, and what is no more.
func replaced(before, after []*xds.Resource) (put, remove []*xds.Resource) {
	if slices.EqualFunc(before, after, func(a, b *xds.Resource) bool { return a == b || a.Name == b.Name }) {
		for i, r := range after {
			if before[i] != r {
				put = append(put, r)
			}
		}
		return put, nil
	}
	known := make(map[string]*xds.Resource, len(before))
	for _, r := range before {
		known[r.Name] = r
	}
	for _, r := range after {
		if known[r.Name] != r {
			put = append(put, r)
		}
		delete(known, r.Name)
	}
	for _, r := range before {
		if known[r.Name] == r {
			remove = append(remove, r)
		}
	}
	return put, remove
}

func sameVersions(a, b *xds.Snapshot) bool {
	return !slices.ContainsFunc(xds.Types(), func(t xds.Type) bool { return a.Version(t) != b.Version(t) })
}

// frame builds everything but endpoints.
func (b *builder) frame() (*frame, error) {
	b.dims = dimensions(b.gateway, b.plan.Admission, b.viewpoint.Tenants)
	c := &collector{}
	if b.proxyless() {
		b.grpcServices(c)
		return &frame{resources: c.resources}, c.err
	}
	dialled := b.dialled()
	b.secrets(c)
	b.edge(c)
	b.hops(c)
	b.classClusters(c)
	b.poolClusters(c, dialled)
	b.gatewayClusters(c)
	b.eastWest(c)
	b.geoService(c)
	return &frame{c.resources, dialled}, c.err
}

// endpoints builds the assignments of class clusters and of the pools that are dialled from here. What was made before of the same
// is taken as it is.
func (b *builder) endpoints(before, now *made) error {
	c := &collector{resources: make([]*xds.Resource, 0, len(now.decisions)+len(now.frame.dialled))}
	now.classes = make([]*classEndpoints, len(now.decisions))
	for i, d := range now.decisions {
		var known *classEndpoints
		if before.frame == now.frame && i < len(before.decisions) && before.decisions[i] == d {
			known = before.classes[i]
		}
		if now.classes[i] = b.classAssignment(c, d, known); now.classes[i] != nil {
			c.keep(now.classes[i].resource)
		}
	}
	for _, i := range now.frame.dialled {
		b.poolAssignment(c, &b.memo.pools[i])
	}
	now.endpoints = c.resources
	return c.err
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

// dialled are the pools whose endpoints are dialled from here, by place in World.Pools.
func (b *builder) dialled() (places []int) {
	for i, p := range b.world.Pools() {
		if b.direct(p.Key.Cluster) {
			places = append(places, i)
		}
	}
	return places
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
