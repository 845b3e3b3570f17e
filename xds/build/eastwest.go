package build

import (
	"slices"

	match "github.com/cncf/xds/go/xds/type/matcher/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsinspector "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// eastWest builds the listener for other clusters' gateways. It leads to this cluster's own pools only, so a request
// crosses at most once, and only for classes that may be served here.
func (b *builder) eastWest(c *collector) {
	e := b.gateway.Spec.EastWest
	if e == nil || b.viewpoint.Tenants != world.AllTenants { // whose a request from another gateway is, nobody says
		return
	}
	m := innerManager(c, xds.EastWestListener)
	m.RouteSpecifier = routesOverADS(xds.EastWestRoutes)
	out := &listener.Listener{
		Name: xds.EastWestListener, Address: socketAddress(e.Address.String(), e.Port), PerConnectionBufferLimitBytes: uint32Value(connectionBuffer),
		ListenerFilters: []*listener.ListenerFilter{{Name: "envoy.filters.listener.tls_inspector", ConfigType: &listener.ListenerFilter_TypedConfig{TypedConfig: c.any(&tlsinspector.TlsInspector{})}}},
		FilterChains: []*listener.FilterChain{{
			Name: xds.HTTPServerName, FilterChainMatch: &listener.FilterChainMatch{ServerNames: []string{xds.HTTPServerName}},
			Filters: []*listener.Filter{managerFilter(c, m)}, TransportSocket: b.fromGateways(c, "h2"),
		}},
	}
	for i := range b.set.Services {
		out.FilterChains = append(out.FilterChains, b.tcpChains(c, &b.set.Services[i])...)
	}
	c.add(xds.TypeListener, out.Name, out)
	host := &route.VirtualHost{Name: "peers", Domains: []string{"*"}, RequestBodyBufferLimit: wrapperspb.UInt64(uint64(b.gateway.Spec.MaxBodyBytes)),
		Matcher: b.byService(c, func(s *policies.Service) *match.Matcher_OnMatch { return b.byClass(c, s) })}
	c.add(xds.TypeRoute, xds.EastWestRoutes, &route.RouteConfiguration{Name: xds.EastWestRoutes, ValidateClusters: boolValue(false), VirtualHosts: []*route.VirtualHost{host}})
}

// byClass leads requests for a service to its pool here, for the classes that permit it; nil where there is no pool.
func (b *builder) byClass(c *collector, s *policies.Service) *match.Matcher_OnMatch {
	pool := b.toPool(c, s, b.viewpoint.Cluster)
	classes := b.classesServedHere(s)
	if pool == nil || len(classes) == 0 {
		return nil
	}
	table := map[string]*match.Matcher_OnMatch{}
	for _, class := range classes {
		table[string(class)] = pool
	}
	return nest(onHeader(c, xds.HeaderClass, table, then(c, "class-not-here", unsatisfiable.route())))
}

// classesServedHere are a service's classes whose decision, seen from here, does not refuse this cluster.
func (b *builder) classesServedHere(s *policies.Service) []world.ClassID {
	return slices.DeleteFunc(slices.Clone(b.plan.Admission.Classes(s.Metadata.Name)), func(class world.ClassID) bool {
		d, ok := b.plan.Find(b.viewpoint.ID(), s.Metadata.Name, class)
		if !ok {
			return true
		}
		choice, ok := d.Choice(b.viewpoint.Cluster)
		return !ok || outside(choice)
	})
}

// outside says whether a residency rule refuses a cluster. Other refusals are about where requests start.
func outside(choice *plan.Choice) bool {
	return choice.Role == plan.Refused && slices.ContainsFunc(choice.Reasons, func(r plan.Reason) bool { return r.Code == plan.OutsideBoundary })
}
