package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// mostViolations bounds a report: the first few tell what is wrong.
const mostViolations = 50

// Checker checks snapshots, and remembers the resources that it has decoded. The zero value is ready; it has one owner.
type Checker struct {
	decoded map[*xds.Resource]message
}

// Check gives everything that is wrong with a snapshot in a world, at most the first fifty, sorted; none means that it
// may be published.
func Check(w *world.World, s *xds.Snapshot) []Violation {
	var c Checker
	return c.Check(w, s)
}

// Check is the function Check with a memory.
func (c *Checker) Check(w *world.World, s *xds.Snapshot) []Violation {
	k := &walk{world: w, viewpoint: s.Viewpoint, set: w.Policies(), seen: map[string]bool{}, reached: map[reachKey][]place{},
		actions: map[*anypb.Any]*route.Route{}, judgements: map[judged]bool{}}
	if k.set == nil {
		k.report(Violation{Code: NotAnalysable, Detail: "there are no policies to check against"})
		return k.violations
	}
	v, err := world.ParseViewpoint(s.Viewpoint)
	if err != nil {
		k.report(Violation{Code: NotAnalysable, Detail: err.Error()})
		return k.violations
	}
	gateway, ok := k.set.GatewayFor(v.Role, v.Region, v.Cluster)
	if !ok {
		k.report(Violation{Code: NotAnalysable, Detail: "no Gateway selects this viewpoint"})
		return k.violations
	}
	k.here, k.gateway, k.rules, k.places = v.Cluster, gateway, newRulebook(k.set), placesOf(k.set)
	k.config = c.decodeAll(k, s)
	k.structure()
	k.listeners()
	slices.SortFunc(k.violations, compareViolations)
	return k.violations
}

func compareViolations(a, b Violation) int {
	return cmp.Or(strings.Compare(string(a.Code), string(b.Code)), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Route, b.Route),
		strings.Compare(a.Cluster, b.Cluster), a.Address.Compare(b.Address), strings.Compare(a.Detail, b.Detail))
}

// decodeAll reads a snapshot. A resource that was read before is not read again.
func (c *Checker) decodeAll(k *walk, s *xds.Snapshot) *config {
	out := &config{listeners: map[string]*listener.Listener{}, routes: map[string]*route.RouteConfiguration{}, clusters: map[string]*cluster.Cluster{},
		endpoints: map[string]*endpoint.ClusterLoadAssignment{}, secrets: map[string]*tls.Secret{}}
	next := make(map[*xds.Resource]message, len(s.Resources))
	for _, r := range s.Resources {
		m, known := c.decoded[r]
		if !known {
			var err error
			if m, err = decode(r); err != nil || m == nil {
				k.report(Violation{Code: Invalid, Resource: r.Name, Detail: fmt.Sprintf("%s does not decode", r.Type.Short())})
				continue
			}
			if err := m.ValidateAll(); err != nil {
				k.report(Violation{Code: Invalid, Resource: r.Name, Detail: err.Error()})
				continue
			}
		}
		if named(m) != r.Name {
			k.report(Violation{Code: Invalid, Resource: r.Name, Detail: "the resource calls itself " + named(m)})
		}
		next[r] = m
		out.put(r.Name, m)
	}
	c.decoded = forget(c.decoded, next)
	return out
}

// forget bounds the memory to a few snapshots' worth: other viewpoints share most resources.
func forget(old, next map[*xds.Resource]message) map[*xds.Resource]message {
	const most = 200_000
	if len(old)+len(next) > most {
		return next
	}
	if old == nil {
		return next
	}
	for r, m := range next {
		old[r] = m
	}
	return old
}

// walk is one check under way.
type walk struct {
	world     *world.World
	viewpoint world.ViewpointID
	here      policies.ClusterName
	set       *policies.Set
	gateway   *policies.Gateway
	rules     *rulebook
	places    map[string]place
	config    *config

	reached    map[reachKey][]place
	actions    map[*anypb.Any]*route.Route
	judgements map[judged]bool
	seen       map[string]bool
	violations []Violation
}

// report notes a violation once.
func (k *walk) report(v Violation) {
	v.Viewpoint = k.viewpoint
	// The request is an example; the same way to the same address is one violation.
	once := fmt.Sprint(v.Code, v.Resource, v.Route, v.Cluster, v.Address, v.Policies)
	if v.Code == NotAnalysable || v.Code == Invalid || v.Code == Dangling {
		once += v.Detail
	}
	if k.seen[once] || len(k.violations) >= mostViolations {
		return
	}
	k.seen[once] = true
	k.violations = append(k.violations, v)
}

func (k *walk) notAnalysable(resource, format string, args ...any) {
	k.report(Violation{Code: NotAnalysable, Resource: resource, Detail: fmt.Sprintf(format, args...)})
}
