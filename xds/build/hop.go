package build

import (
	match "github.com/cncf/xds/go/xds/type/matcher/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// hops builds the inner hop of each member cluster: an internal listener that leads to the cluster's own pools, where its
// servers are dialled from here, or to its gateways.
func (b *builder) hops(c *collector) {
	for _, member := range b.members() {
		name := xds.HopListener(member)
		m := innerManager(c, name)
		m.RouteSpecifier = routesOverADS(xds.HopRoutes(member))
		c.add(xds.TypeListener, name, &listener.Listener{
			Name: name, ListenerSpecifier: &listener.Listener_InternalListener{InternalListener: &listener.Listener_InternalListenerConfig{}},
			PerConnectionBufferLimitBytes: uint32Value(connectionBuffer),
			FilterChains:                  []*listener.FilterChain{{Filters: []*listener.Filter{managerFilter(c, m)}}},
		})
		host := &route.VirtualHost{Name: string(member), Domains: []string{"*"}, RequestBodyBufferLimit: wrapperspb.UInt64(uint64(b.gateway.Spec.MaxBodyBytes))}
		if b.direct(member) {
			host.Matcher = b.byService(c, func(s *policies.Service) *match.Matcher_OnMatch { return b.toPool(c, s, member) })
		} else {
			host.Routes = []*route.Route{toCluster("gateway", xds.GatewayCluster(member))}
		}
		c.add(xds.TypeRoute, xds.HopRoutes(member), &route.RouteConfiguration{Name: xds.HopRoutes(member), ValidateClusters: boolValue(false), VirtualHosts: []*route.VirtualHost{host}})
	}
}

// innerManager handles requests that a gateway has admitted: nothing about the client is decided here.
func innerManager(c *collector, name string) *hcm.HttpConnectionManager {
	m := httpManager(name, []*hcm.HttpFilter{rememberPinned(c), httpFilter(c, "envoy.filters.http.router", &router.Router{SuppressEnvoyHeaders: true})})
	m.CodecType = hcm.HttpConnectionManager_HTTP2
	m.SkipXffAppend = true
	m.GenerateRequestId = boolValue(false)
	m.ServerHeaderTransformation = hcm.HttpConnectionManager_PASS_THROUGH
	return m
}

// byService looks the service up that the first gateway has named. lead gives nil for a service that is not here.
func (b *builder) byService(c *collector, lead func(*policies.Service) *match.Matcher_OnMatch) *match.Matcher {
	table := map[string]*match.Matcher_OnMatch{}
	for i := range b.set.Services {
		s := &b.set.Services[i]
		if s.Spec.Protocol == policies.ProtocolTCP {
			continue
		}
		if to := lead(s); to != nil {
			table[string(s.Metadata.Name)] = to
		}
	}
	none := then(c, "not-here", noHealthy.route())
	if len(table) == 0 {
		return ifHeader(c, xds.HeaderService, ".+", none, none)
	}
	return onHeader(c, xds.HeaderService, table, none)
}

// toPool leads to a service's pool in a cluster; nil where there is none. Within a pool of several servers a failure is
// retried at another one.
func (b *builder) toPool(c *collector, s *policies.Service, member policies.ClusterName) *match.Matcher_OnMatch {
	key := world.PoolKey{Service: s.Metadata.Name, Cluster: member}
	pool := b.world.Pool(key)
	if pool == nil {
		return nil
	}
	r := toCluster(string(s.Metadata.Name), xds.PoolCluster(key))
	if len(pool.Endpoints) > 1 {
		r.GetRoute().RetryPolicy = withinPool(c)
	}
	return then(c, r.Name, r)
}

// toCluster leads everything to one Envoy cluster and bounds nothing.
func toCluster(name, cluster string) *route.Route {
	return &route.Route{Name: name, Match: anyPath(), Action: &route.Route_Route{Route: &route.RouteAction{
		ClusterSpecifier: &route.RouteAction_Cluster{Cluster: cluster}, Timeout: duration(0)}}}
}
