package verify

import (
	"fmt"
	"slices"
	"strings"

	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

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
	atlas    *atlas
	tcp      map[policies.ServiceName]bool       // services that speak plain TCP
	sound    map[identity]bool                   // resources but assignments, that by themselves are right
	admitted map[admissionKey][]admission        // ways that clients' requests take, where they could be followed
	passed   map[world.ViewpointID]*xds.Snapshot // the last one of each viewpoint that passed
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
	k.rules, k.atlas, k.tcp, k.admitted = c.rules, c.atlas, c.tcp, c.admitted
	if c.sameWays(before, s) {
		c.passed[s.Viewpoint] = s
		return nil
	}
	if c.read(k, before); len(k.violations) > 0 {
		return k.sorted()
	}
	if k.references(); len(k.violations) > 0 {
		return k.sorted()
	}
	if k.listeners(); len(k.violations) == 0 {
		c.passed[s.Viewpoint] = s
	}
	return k.sorted()
}

// follow forgets what does not follow from the world as it is now.
func (c *Checker) follow(w *world.World) {
	if c.set != w.Policies() {
		*c = Checker{packed: c.packed, set: w.Policies(), rules: newRulebook(w.Policies()), tcp: tcpServices(w.Policies()), sound: map[identity]bool{}, admitted: map[admissionKey][]admission{}}
	}
	if c.packed == nil || len(c.packed) > mostPacked {
		c.packed = map[content]bool{}
	}
	if c.atlas == nil || !c.atlas.current(w) {
		c.atlas = drawAtlas(w)
		c.passed = map[world.ViewpointID]*xds.Snapshot{}
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

// sameWays says whether requests can get nowhere in a snapshot that they could not get in one that passed: nothing has
// changed but priorities, weights and health in assignments.
func (c *Checker) sameWays(before, s *xds.Snapshot) bool {
	if before == nil || before.Len() != s.Len() {
		return false
	}
	for _, t := range s.Types() {
		changed, gone := xds.Diff(before.Of(t), s.Of(t))
		if len(gone) > 0 || len(changed) > 0 && t != xds.TypeEndpoint {
			return false
		}
		for _, r := range changed {
			if old := before.Resource(t, r.Name); old == nil || !c.sameTargets(old, r) {
				return false
			}
		}
	}
	return true
}

// sameTargets says whether two versions of an assignment, the first of which passed, lead to the same places, and the
// second is right by itself.
func (c *Checker) sameTargets(old, now *xds.Resource) bool {
	m, flaws := c.examine(now, false)
	before, err := decode(old)
	return len(flaws) == 0 && err == nil && slices.Equal(targetsIn(before), targetsIn(m))
}

// targetsIn are the places that an assignment leads to, sorted, each once.
func targetsIn(m message) []string {
	var all []string
	for _, l := range m.(*endpoint.ClusterLoadAssignment).GetEndpoints() {
		for _, host := range l.GetLbEndpoints() {
			own := host.GetMetadata().GetFilterMetadata()[matchedSockets]
			for _, a := range addressesOf(host) {
				key, _ := proto.MarshalOptions{Deterministic: true}.Marshal(a) // nothing in it can fail
				socket, _ := proto.MarshalOptions{Deterministic: true}.Marshal(own)
				all = append(all, fmt.Sprintf("%q %q", key, socket))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// read decodes a snapshot, and reports resources that are not right by themselves.
func (c *Checker) read(k *walk, before *xds.Snapshot) {
	var last *xds.Resource
	for r := range k.config.snapshot.All() {
		if last != nil && last.Type == r.Type && last.Name == r.Name {
			k.report(Violation{Code: Invalid, Resource: r.Name, Detail: r.Type.Short() + ": it is there twice"})
		}
		last = r
		id := identity{r.Type, r.Name, r.Version}
		sound := c.sound[id] || r.Type == xds.TypeEndpoint && before != nil && before.Resource(r.Type, r.Name) == r
		if sound && r.Type == xds.TypeRoute {
			continue
		}
		m, flaws := c.examine(r, sound)
		for _, f := range flaws {
			k.report(Violation{Code: f.code, Resource: r.Name, Detail: r.Type.Short() + ": " + f.detail})
		}
		if len(flaws) == 0 {
			k.config.put(r.Name, m)
			if r.Type != xds.TypeEndpoint { // their versions are too many to remember
				c.sound[id] = true
			}
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
