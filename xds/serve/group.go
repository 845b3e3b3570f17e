package serve

import (
	"slices"
	"sync"
	"time"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
)

// group are the streams of one viewpoint. Its lock is taken before that of a stream, and after that of the server.
type group struct {
	server    *Server           // set once
	viewpoint world.ViewpointID // set once
	watch     *cache.Watch      // set once

	changes changes // locks itself

	mu      sync.Mutex
	rollout rollout              // under mu
	nodes   map[string][]*stream // under mu
}

// newGroup begins to watch a viewpoint. The caller holds the server's lock.
func (s *Server) newGroup(v world.ViewpointID) *group {
	g := &group{server: s, viewpoint: v, nodes: map[string][]*stream{}, rollout: rollout{share: s.config.CanaryShare, timeout: s.config.CanaryTimeout}}
	g.watch = s.config.Cache.Watch(v, g.publish)
	g.publish()
	return g
}

// publish takes what is newest in the cache.
func (g *group) publish() {
	p := g.server.config.Cache.Newest(g.viewpoint)
	if p == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rollout.offer(p, g.eligible, time.Now())
	g.wake()
}

// eligible are the nodes that could try something, sorted: those that refuse nothing now, or all where all do. The caller holds
// mu.
func (g *group) eligible() []string {
	all := make([]string, 0, len(g.nodes))
	var well []string
	for node, streams := range g.nodes {
		all = append(all, node)
		if !slices.ContainsFunc(streams, (*stream).refuses) {
			well = append(well, node)
		}
	}
	if len(well) > 0 {
		all = well
	}
	slices.Sort(all)
	return all
}

// wake wakes the streams that are not given what is newest for them. The caller holds mu.
func (g *group) wake() {
	for node, streams := range g.nodes {
		newest := g.rollout.newest(node)
		for _, st := range streams {
			if st.aim.Swap(newest) != newest {
				st.wake()
			}
		}
	}
}

// join makes a stream one of the group.
func (g *group) join(st *stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nodes[st.proxy.node] = append(g.nodes[st.proxy.node], st)
	st.aim.Store(g.rollout.newest(st.proxy.node))
}

// leave forgets a stream. empty says that it was the last.
func (g *group) leave(st *stream) (empty bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	node := st.proxy.node
	rest := slices.DeleteFunc(g.nodes[node], func(o *stream) bool { return o == st })
	g.nodes[node] = rest
	if len(rest) == 0 {
		delete(g.nodes, node)
		if q, moved := g.rollout.leave(node, g.eligible, time.Now()); moved {
			g.quarantined(q)
			g.wake()
		}
	}
	return len(g.nodes) == 0
}

// tick does what only time moves.
func (g *group) tick(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rollout.tick(now) {
		g.wake()
	}
}

// settled notes that a stream has accepted all of a publication; its node has once all of its streams have.
func (g *group) settled(st *stream, p *cache.Published) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p == g.rollout.stable && g.rollout.accepted {
		return
	}
	for _, o := range g.nodes[st.proxy.node] {
		if o != st && !o.settledOn(p.Snapshot) {
			return
		}
	}
	if g.rollout.accept(st.proxy.node, p) {
		g.wake()
	}
}

// refused notes that a stream refused resources of a snapshot.
func (g *group) refused(st *stream, s *xds.Snapshot, resources []*xds.Resource, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q := g.rollout.refuse(st.proxy.node, s, resources, reason, time.Now()); q != nil {
		g.quarantined(q)
		g.wake()
	}
}

// quarantined tells of a quarantine. The caller holds mu.
func (g *group) quarantined(q *Quarantine) {
	if q == nil {
		return
	}
	g.server.log.Error("configuration quarantined, the last good one is served again", "viewpoint", string(g.viewpoint),
		"proxy", q.Node, "resources", nameSome(q.Refused), "reason", q.Reason)
	g.server.config.OnQuarantine(g.viewpoint, *q)
}
