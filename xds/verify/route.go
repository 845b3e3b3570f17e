package verify

import (
	"fmt"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// leafOf is one Envoy cluster that a route sends requests to, and as what.
type leafOf struct {
	resource, route, cluster string
	service                  policies.ServiceName
	class                    world.ClassID
}

// routeOf reads the route in a match action, once for each place that it stands in.
func (k *walk) routeOf(a *anypb.Any) (*route.Route, error) {
	if r, ok := k.actions[a]; ok {
		return r, nil
	}
	r := &route.Route{}
	if !unpackAny(a, r) {
		return nil, fmt.Errorf("%w: an action that is not a route (%s)", errNotAnalysable, typeOf(a.GetTypeUrl()))
	}
	k.actions[a] = r
	return r, nil
}

// leafs are the clusters that a route sends to: all of its weighted ones, and all of its mirrors.
func (k *walk) leafs(resource string, v *route.VirtualHost, r *route.Route) []leafOf {
	if r == nil || r.GetDirectResponse() != nil {
		return nil
	}
	a := r.GetRoute()
	if why := uncertain(r); why != "" || a == nil {
		k.notAnalysable(resource, "route %s: %s", r.GetName(), why)
		return nil
	}
	named := func(cluster string, added ...[]*core.HeaderValueOption) leafOf {
		leaf := leafOf{resource: resource, route: r.GetName(), cluster: cluster}
		for _, options := range append(added, r.GetRequestHeadersToAdd(), v.GetRequestHeadersToAdd()) {
			for _, o := range options {
				switch strings.ToLower(o.GetHeader().GetKey()) {
				case headerService:
					leaf.service = policies.ServiceName(o.GetHeader().GetValue())
				case headerClass:
					leaf.class = world.ClassID(o.GetHeader().GetValue())
				}
			}
		}
		return leaf
	}
	var all []leafOf
	if c := a.GetCluster(); c != "" {
		all = append(all, named(c))
	}
	for _, w := range a.GetWeightedClusters().GetClusters() {
		if w.GetClusterHeader() != "" || len(w.GetTypedPerFilterConfig()) > 0 {
			k.notAnalysable(resource, "route %s: a weighted cluster that a header chooses or filters change", r.GetName())
		}
		all = append(all, named(w.GetName(), w.GetRequestHeadersToAdd()))
	}
	for _, m := range a.GetRequestMirrorPolicies() {
		all = append(all, named(m.GetCluster()))
	}
	return all
}

// uncertain says why a route's clusters can't be told; empty where they can.
func uncertain(r *route.Route) string {
	a := r.GetRoute()
	for name := range r.GetTypedPerFilterConfig() {
		if name != "envoy.filters.http.buffer" {
			return "it reconfigures filter " + name
		}
	}
	switch {
	case r.GetRedirect() != nil:
		return "it redirects"
	case a == nil:
		return "it is neither a route nor an answer"
	case a.GetClusterHeader() != "" || a.GetClusterSpecifierPlugin() != "" || a.GetInlineClusterSpecifierPlugin() != nil:
		return "a header or plugin chooses the cluster"
	case a.GetInternalRedirectPolicy() != nil:
		return "it follows redirects of the server"
	case a.GetCluster() == "" && a.GetWeightedClusters() == nil:
		return "it names no cluster"
	}
	for _, m := range a.GetRequestMirrorPolicies() {
		if m.GetCluster() == "" {
			return "a header chooses the mirror"
		}
	}
	return ""
}

// judge checks everything that a leaf reaches against the rules that bind a subject's request.
func (k *walk) judge(leaf leafOf, s subject) {
	key := judged{leaf, s}
	if k.judgements[key] {
		return
	}
	k.judgements[key] = true
	for _, p := range k.reach(leaf.cluster, leaf.service) {
		v := Violation{Resource: leaf.resource, Route: leaf.route, Cluster: p.via, Address: p.address, Detail: s.String()}
		if p.region == nil {
			continue // reported where it was found
		}
		v.Region = p.region.Metadata.Name
		bound, refused := k.rules.binding(s, p.service)
		if len(refused) > 0 {
			v.Code, v.Policies = LocationUnknown, namesOf(refused)
			k.report(v)
		}
		for _, r := range bound {
			if !k.rules.inside(r, p.region) {
				v.Code, v.Policies = OutsideBoundary, namesOf([]*policies.Residency{r})
				k.report(v)
			}
		}
		if want := world.ClassOf(namesOf(bound)); leaf.service != "" && p.service == leaf.service && leaf.class != want && len(refused) == 0 {
			v.Code, v.Policies = WrongClass, namesOf(bound)
			v.Detail = fmt.Sprintf("%s: passed on as class %q, the rules make it %q", s, leaf.class, want)
			k.report(v)
		}
	}
}

// judged is a judgement that was made: the rules don't change during a walk.
type judged struct {
	leaf    leafOf
	subject subject
}
