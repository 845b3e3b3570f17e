package verify

import (
	"fmt"
	"strings"

	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	stringmatch "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// proxyless walks the listener of gRPC clients that route by themselves: for every kind of request, of an unknown location,
// the first route that matches it, and all that it leads to. A value that comes twice must lead nowhere that it may not lead
// when it comes once: such clients join values before they match.
func (k *walk) proxyless(name string, l *listener.Listener) {
	var m hcm.HttpConnectionManager
	if !k.grpc || !unpackAny(l.GetApiListener().GetApiListener(), &m) || len(l.GetFilterChains()) > 0 || l.GetDefaultFilterChain() != nil {
		k.notAnalysable(name, "a gRPC client's listener is an api_listener with a connection manager, and nothing else")
		return
	}
	k.onlyRouter(name, &m)
	c, ok := k.config.routeConfiguration(m.GetRds().GetRouteConfigName())
	if !ok {
		k.dangling(name, "route configuration", m.GetRds().GetRouteConfigName())
		return
	}
	routes, err := readMetadataRoutes(c)
	if err != nil {
		k.follow(c.GetName(), err)
		return
	}
	for _, s := range k.rules.subjects(routes.seen, "", k.gateway.Spec.TenantHeader, k.gateway.Spec.DataLabelHeader) {
		if s.country != "" {
			continue
		}
		kind := k.kindOf(s)
		for _, times := range []int{1, 2} {
			for _, t := range routes.first(k.metadata(s, times)) {
				if string(t.service) != name {
					k.report(Violation{Code: WrongService, Resource: c.GetName(), Route: t.route, Cluster: t.cluster, Detail: fmt.Sprintf("service %q is asked for, and the route names %q", name, t.service)})
				}
				k.judge(admission{kind, t})
			}
		}
	}
}

// metadata are the headers by which a client says tenant and label, each so many times.
func (k *walk) metadata(s subject, times int) map[string]string {
	h := map[string]string{}
	for name, v := range map[string]string{k.gateway.Spec.TenantHeader: string(s.tenant), k.gateway.Spec.DataLabelHeader: string(s.label)} {
		if name != "" && v != "" {
			h[strings.ToLower(name)] = strings.TrimSuffix(strings.Repeat(v+",", times), ",")
		}
	}
	return h
}

// metadataRoutes are routes that match by metadata, in order.
type metadataRoutes struct {
	list []metadataRoute
	seen map[string]map[string]bool // values that are looked for, by header
}

type metadataRoute struct {
	headers []*route.HeaderMatcher
	targets []*target
}

// readMetadataRoutes reads a route configuration of one virtual host for every authority, whose routes match all methods.
func readMetadataRoutes(c *route.RouteConfiguration) (*metadataRoutes, error) {
	hosts := c.GetVirtualHosts()
	if len(hosts) != 1 || len(hosts[0].GetDomains()) != 1 || hosts[0].GetDomains()[0] != "*" || hosts[0].GetMatcher() != nil {
		return nil, fmt.Errorf("%w: a gRPC client's routes are those of one virtual host for *", errNotAnalysable)
	}
	out := &metadataRoutes{seen: map[string]map[string]bool{}}
	for _, r := range hosts[0].GetRoutes() {
		if _, ok := r.GetMatch().GetPathSpecifier().(*route.RouteMatch_Prefix); !ok || r.GetMatch().GetPrefix() != "" {
			return nil, fmt.Errorf("%w: route %s does not match every method", errNotAnalysable, r.GetName())
		}
		for _, h := range r.GetMatch().GetHeaders() {
			if err := out.look(r, h); err != nil {
				return nil, err
			}
		}
		one := metadataRoute{headers: r.GetMatch().GetHeaders()}
		if r.GetNonForwardingAction() == nil {
			var err error
			if one.targets, err = targetsOf(c.GetName(), r); err != nil {
				return nil, err
			}
		}
		out.list = append(out.list, one)
	}
	return out, nil
}

// look notes a value that is looked for.
func (m *metadataRoutes) look(r *route.Route, h *route.HeaderMatcher) error {
	switch p := h.GetStringMatch().GetMatchPattern().(type) {
	case *stringmatch.StringMatcher_Exact:
		name := strings.ToLower(h.GetName())
		if m.seen[name] == nil {
			m.seen[name] = map[string]bool{}
		}
		m.seen[name][p.Exact] = true
		return nil
	case *stringmatch.StringMatcher_Contains:
		if p.Contains == "," {
			return nil
		}
	}
	return fmt.Errorf("%w: route %s matches header %s otherwise than by a value, or by there being several", errNotAnalysable, r.GetName(), h.GetName())
}

// first are the targets of the first route that matches; none where that refuses, or none matches.
func (m *metadataRoutes) first(headers map[string]string) []*target {
	for _, r := range m.list {
		if r.matches(headers) {
			return r.targets
		}
	}
	return nil
}

func (r metadataRoute) matches(headers map[string]string) bool {
	for _, h := range r.headers {
		value, there := headers[strings.ToLower(h.GetName())]
		if !there {
			return false
		}
		switch p := h.GetStringMatch().GetMatchPattern().(type) {
		case *stringmatch.StringMatcher_Exact:
			if value != p.Exact {
				return false
			}
		case *stringmatch.StringMatcher_Contains:
			if !strings.Contains(value, p.Contains) {
				return false
			}
		}
	}
	return true
}
