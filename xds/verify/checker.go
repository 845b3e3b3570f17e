package verify

import (
	"fmt"
	"strings"

	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// Checker checks snapshots and remembers what passed, so that a check costs what has changed. What it says is the same as
// without a memory. The zero value is ready; it has one owner.
type Checker struct {
	// Packed messages that are understood and valid, whatever the policies.
	packed map[content]bool
	// All else follows from these policies; another set clears it.
	set      *policies.Set
	rules    *rulebook
	ledger   *ledger
	tcp      map[policies.ServiceName]bool // services that speak plain TCP
	sound    map[identity]bool             // resources but assignments, that by themselves are right
	admitted map[admissionKey][]admission  // ways that clients' requests take, where they could be followed
	// The last one of each viewpoint that passed, and the last one that did so by a walk, which led to all that the former leads to.
	passed, walked map[world.ViewpointID]*xds.Snapshot
	// Assignments that passed, and lead elsewhere since then without having changed: addresses have changed hands.
	moved map[world.ViewpointID]map[identity]bool
}

// mostPacked bounds what is remembered of packed messages.
const mostPacked = 200_000

// identity is a resource with its content.
type identity struct {
	kind          xds.Type
	name, version string
}

// Check is the function Check with a memory.
func (c *Checker) Check(w *world.World, s *xds.Snapshot) []Violation {
	k := &walk{viewpoint: s.Viewpoint, set: w.Policies(), config: newConfig(s), seen: map[string]bool{},
		reached: map[entry]*reached{}, routings: map[*route.RouteConfiguration]*routing{}, inner: map[string][]*routing{}}
	if k.set == nil {
		k.notAnalysable("", "there are no policies to check against")
		return k.violations
	}
	if !k.locateViewpoint() {
		return k.violations
	}
	c.follow(w)
	before := c.passed[s.Viewpoint]
	k.rules, k.atlas, k.tcp, k.admitted = c.rules, c.ledger.atlas, c.tcp, c.admitted
	if c.sameWays(before, s) {
		c.pass(s)
		return nil
	}
	if c.read(k, before); len(k.violations) > 0 {
		return k.sorted()
	}
	if k.references(); len(k.violations) > 0 {
		return k.sorted()
	}
	if k.listeners(); len(k.violations) == 0 {
		c.passWalked(s)
	}
	return k.sorted()
}

func (c *Checker) pass(s *xds.Snapshot) {
	c.passed[s.Viewpoint] = s
	delete(c.moved, s.Viewpoint)
	c.ledger.sweep(c.passed, c.walked)
}

func (c *Checker) passWalked(s *xds.Snapshot) {
	if !c.ledger.walked(s) {
		clear(c.passed)
		clear(c.walked)
	}
	c.walked[s.Viewpoint] = s
	c.pass(s)
}

// follow forgets what does not follow from the world as it is now.
func (c *Checker) follow(w *world.World) {
	if c.set != w.Policies() {
		*c = Checker{packed: c.packed, set: w.Policies(), rules: newRulebook(w.Policies()), tcp: tcpServices(w.Policies()), sound: map[identity]bool{}, admitted: map[admissionKey][]admission{}}
	}
	if c.packed == nil || len(c.packed) > mostPacked {
		c.packed = map[content]bool{}
	}
	if c.ledger == nil {
		c.ledger = newLedger(drawAtlas(w))
		c.passed, c.walked = map[world.ViewpointID]*xds.Snapshot{}, map[world.ViewpointID]*xds.Snapshot{}
		c.moved = map[world.ViewpointID]map[identity]bool{}
		return
	}
	for _, id := range c.ledger.revise(w) {
		for v, s := range c.passed {
			if r := s.Resource(id.kind, id.name); r != nil && identityOf(r) == id {
				if c.moved[v] == nil {
					c.moved[v] = map[identity]bool{}
				}
				c.moved[v][id] = true
			}
		}
	}
}

func tcpServices(set *policies.Set) map[policies.ServiceName]bool {
	tcp := map[policies.ServiceName]bool{}
	for _, s := range set.Services {
		if s.Spec.Protocol == policies.ProtocolTCP {
			tcp[s.Metadata.Name] = true
		}
	}
	return tcp
}

// sameWays says whether requests can get nowhere in a snapshot that they could not get in one that was walked: nothing has
// changed since the last one that passed but assignments, and those lead nowhere new.
func (c *Checker) sameWays(before, s *xds.Snapshot) bool {
	if before == nil || before.Len() != s.Len() {
		return false
	}
	walked := c.walked[s.Viewpoint].Of(xds.TypeEndpoint)
	for _, t := range s.Types() {
		changed, gone := xds.Diff(before.Of(t), s.Of(t))
		if len(gone) > 0 || len(changed) > 0 && t != xds.TypeEndpoint {
			return false
		}
		for _, r := range changed {
			m, flaws := c.examine(r, false)
			if len(flaws) > 0 || !c.ledger.leadsNowhereNew(walked.Find(r.Name), c.ledger.enter(r, m.(*endpoint.ClusterLoadAssignment))) {
				return false
			}
		}
	}
	for id := range c.moved[s.Viewpoint] {
		r := s.Resource(id.kind, id.name)
		if identityOf(r) == id && !c.ledger.leadsNowhereNew(walked.Find(id.name), c.ledger.known[id]) {
			return false
		}
	}
	return true
}

// read decodes a snapshot, and reports resources that are not right by themselves.
func (c *Checker) read(k *walk, before *xds.Snapshot) {
	var last *xds.Resource
	for r := range k.config.snapshot.All() {
		if last != nil && last.Type == r.Type && last.Name == r.Name {
			k.report(Violation{Code: Invalid, Resource: r.Name, Detail: r.Type.Short() + ": it is there twice"})
		}
		last = r
		id := identityOf(r)
		sound := c.sound[id] || r.Type == xds.TypeEndpoint && before != nil && before.Resource(r.Type, r.Name) == r
		if sound && r.Type == xds.TypeRoute {
			continue
		}
		m, flaws := c.examine(r, sound)
		for _, f := range flaws {
			k.report(Violation{Code: f.code, Resource: r.Name, Detail: r.Type.Short() + ": " + f.detail})
		}
		if len(flaws) > 0 {
			continue
		}
		k.config.put(r.Name, m)
		if a, ok := m.(*endpoint.ClusterLoadAssignment); ok {
			c.ledger.enter(r, a) // their versions are too many to remember as sound
		} else {
			c.sound[id] = true
		}
	}
}

// examine decodes a resource and says what is wrong with it by itself. One that is known to be sound is only decoded.
func (c *Checker) examine(r *xds.Resource, sound bool) (message, []flaw) {
	m, err := decode(r)
	if err != nil {
		return nil, []flaw{{Invalid, fmt.Sprintf("it does not decode: %s", err)}}
	}
	if sound {
		return m, nil
	}
	var flaws []flaw
	if nameOf(m) != r.Name {
		flaws = append(flaws, flaw{Invalid, fmt.Sprintf("it calls itself %q", nameOf(m))})
	}
	if err := m.ValidateAll(); err != nil {
		flaws = append(flaws, flaw{Invalid, err.Error()})
	}
	strange, err := strangers(m, c.packed)
	if err != nil {
		flaws = append(flaws, flaw{Invalid, err.Error()})
	}
	if len(strange) > 0 {
		flaws = append(flaws, flaw{NotAnalysable, "not understood: " + strings.Join(strange, ", ")})
		return m, flaws
	}
	return m, append(flaws, shape(m)...)
}
