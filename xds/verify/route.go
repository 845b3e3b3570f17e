package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

const (
	headerService = xds.HeaderService
	headerClass   = xds.HeaderClass
)

// target is one Envoy cluster that a route sends requests to, and for which service and class. An empty one is not said.
type target struct {
	resource, route, cluster string
	service                  policies.ServiceName
	class                    world.ClassID
}

// names says whether the route says anything about service or class.
func (t *target) names() bool { return t.service != "" || t.class != "" }

// routing is a route configuration, read once so that it can be walked for many requests.
type routing struct {
	name  string
	hosts []host
	// read are the targets of actions that were read: trees hold many that are equal.
	read    map[content][]*target
	actions map[*anypb.Any][]*target
}

// host is a virtual host: a tree, or else a list.
type host struct {
	tree *node
	list [][]*target
}

// readRouting reads a route configuration.
func readRouting(c *route.RouteConfiguration) (*routing, error) {
	r := &routing{name: c.GetName(), read: map[content][]*target{}, actions: map[*anypb.Any][]*target{}}
	for _, v := range c.GetVirtualHosts() {
		var h host
		if v.GetMatcher() != nil {
			tree, err := readTree(v.GetMatcher())
			if err != nil {
				return nil, err
			}
			h.tree = tree
		}
		for _, one := range v.GetRoutes() {
			targets, err := targetsOf(r.name, one)
			if err != nil {
				return nil, err
			}
			h.list = append(h.list, targets)
		}
		r.hosts = append(r.hosts, h)
	}
	return r, nil
}

// inputs are the headers that the trees look at, sorted, and the values that they look for.
func (r *routing) inputs() (names []string, seen map[string]map[string]bool) {
	seen = map[string]map[string]bool{}
	for _, h := range r.hosts {
		if h.tree != nil {
			h.tree.values(seen)
		}
	}
	return slices.Sorted(maps.Keys(seen)), seen
}

// targets are all that a request with such headers can be sent to, whatever its host: of a list all routes, whatever
// they match.
func (r *routing) targets(h headers) ([]*target, error) {
	var all []*target
	for _, host := range r.hosts {
		for _, targets := range host.list {
			all = append(all, targets...)
		}
		if host.tree == nil {
			continue
		}
		if _, err := host.tree.leaves(h, func(a *anypb.Any) error {
			targets, err := r.action(a)
			all = append(all, targets...)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// action reads the route in a match action, once for equal ones.
func (r *routing) action(a *anypb.Any) ([]*target, error) {
	if targets, ok := r.actions[a]; ok {
		return targets, nil
	}
	targets, ok := r.read[content{a.TypeUrl, string(a.Value)}]
	if !ok {
		var one route.Route
		if !unpackAny(a, &one) {
			return nil, fmt.Errorf("%w: an action that is not a route (%s)", errNotAnalysable, typeOf(a.GetTypeUrl()))
		}
		var err error
		if targets, err = targetsOf(r.name, &one); err != nil {
			return nil, err
		}
		r.read[content{a.TypeUrl, string(a.Value)}] = targets
	}
	r.actions[a] = targets
	return targets, nil
}

// bufferFilter is the one filter that a route may configure for itself: it bounds a body, and sets nothing.
const bufferFilter = "envoy.filters.http.buffer"

// targetsOf are the clusters that a route sends to: all of its weighted ones, and all of its mirrors.
func targetsOf(resource string, r *route.Route) ([]*target, error) {
	for name := range r.GetTypedPerFilterConfig() {
		if name != bufferFilter {
			return nil, fmt.Errorf("%w: route %s reconfigures filter %s", errNotAnalysable, r.GetName(), name)
		}
	}
	if r.GetDirectResponse() != nil {
		return nil, nil
	}
	a := r.GetRoute()
	var all []*target
	for _, w := range a.GetWeightedClusters().GetClusters() {
		if w.GetWeight().GetValue() == 0 {
			return nil, fmt.Errorf("%w: route %s has cluster %s without weight", errNotAnalysable, r.GetName(), w.GetName())
		}
		all = append(all, &target{resource: resource, route: r.GetName(), cluster: w.GetName()})
	}
	if c := a.GetCluster(); c != "" {
		all = append(all, &target{resource: resource, route: r.GetName(), cluster: c})
	}
	for _, m := range a.GetRequestMirrorPolicies() {
		all = append(all, &target{resource: resource, route: r.GetName(), cluster: m.GetCluster()})
	}
	for i, t := range all {
		if t.cluster == "" {
			return nil, fmt.Errorf("%w: route %s names no cluster", errNotAnalysable, r.GetName())
		}
		var own *route.WeightedCluster_ClusterWeight
		if i < len(a.GetWeightedClusters().GetClusters()) {
			own = a.GetWeightedClusters().GetClusters()[i]
		}
		// Envoy applies the headers of the weighted cluster first, then those of the route; of each, removals first.
		if err := t.say(own.GetRequestHeadersToRemove(), own.GetRequestHeadersToAdd()); err != nil {
			return nil, err
		}
		if err := t.say(r.GetRequestHeadersToRemove(), r.GetRequestHeadersToAdd()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// say applies the headers that name service and class.
func (t *target) say(remove []string, add []*core.HeaderValueOption) error {
	for _, name := range remove {
		t.set(name, "")
	}
	for _, o := range add {
		name := strings.ToLower(o.GetHeader().GetKey())
		if name != headerService && name != headerClass {
			continue
		}
		if !overwrites(o) || strings.Contains(o.GetHeader().GetValue(), "%") {
			return fmt.Errorf("%w: route %s does not overwrite header %s by a constant", errNotAnalysable, t.route, name)
		}
		t.set(name, o.GetHeader().GetValue())
	}
	return nil
}

func (t *target) set(header, text string) {
	switch strings.ToLower(header) {
	case headerService:
		t.service = policies.ServiceName(text)
	case headerClass:
		t.class = world.ClassID(text)
	}
}

func overwrites(o *core.HeaderValueOption) bool {
	return o.GetAppendAction() == core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
}
