package build

import (
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	stringmatch "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// A gRPC client that routes by itself asks for a listener by the name of a service, and gets: the listener, routes by what its
// metadata says of tenant and label, a cluster for each class, and the servers that it can dial themselves. Nobody locates it,
// so its requests are of an unknown location.

// proxyless says whether this is for gRPC clients without a proxy.
func (b *builder) proxyless() bool { return b.viewpoint.Dialect == world.DialectGRPC }

// callable says whether such clients can call a service.
func callable(s *policies.Service) bool { return s.Spec.Protocol == policies.ProtocolGRPC }

// grpcServices builds everything but endpoints.
func (b *builder) grpcServices(c *collector) {
	for i := range b.set.Services {
		s := &b.set.Services[i]
		if !callable(s) {
			continue
		}
		name := xds.GRPCListener(s.Metadata.Name)
		m := &hcm.HttpConnectionManager{StatPrefix: name, RouteSpecifier: routesOverADS(name), HttpFilters: []*hcm.HttpFilter{httpFilter(c, "envoy.filters.http.router", &router.Router{})}}
		c.add(xds.TypeListener, name, &listener.Listener{Name: name, ApiListener: &listener.ApiListener{ApiListener: c.any(m)}})
		c.add(xds.TypeRoute, name, &route.RouteConfiguration{Name: name, VirtualHosts: []*route.VirtualHost{{Name: name, Domains: []string{"*"}, Routes: b.grpcRoutes(s)}}})
		for _, class := range b.plan.Admission.Classes(s.Metadata.Name) {
			cluster := b.grpcCluster(s, class)
			c.add(xds.TypeCluster, cluster.Name, cluster)
		}
	}
}

func (b *builder) grpcCluster(s *policies.Service, class world.ClassID) *cluster.Cluster {
	out := b.bare(s, xds.ClassCluster(s.Metadata.Name, class))
	out.LbPolicy = cluster.Cluster_ROUND_ROBIN
	out.CircuitBreakers = breakers(unlimited)
	return out
}

// grpcRoutes lead from what the metadata says to a class: first where tenant and label are both named, last where neither is.
// A header that comes more than once says nothing certain, so it is refused before all.
func (b *builder) grpcRoutes(s *policies.Service) []*route.Route {
	tenants, labels := []string{""}, []string{""}
	var routes []*route.Route
	if h := b.gateway.Spec.TenantHeader; h != "" && len(b.plan.Admission.Tenants) > 0 {
		tenants = append(values(b.plan.Admission.Tenants, func(g plan.TenantGroup) string { return string(g.Tenant) }), "")
		routes = append(routes, refuseGRPC("several-tenants", containsComma(h)))
	}
	if h := b.gateway.Spec.DataLabelHeader; h != "" && len(b.plan.Admission.Labels) > 0 {
		labels = append(values(b.plan.Admission.Labels, func(g plan.LabelGroup) string { return string(g.Label) }), "")
		routes = append(routes, refuseGRPC("several-labels", containsComma(h)))
	}
	if b.viewpoint.Tenants != world.AllTenants {
		tenants = b.served()
	}
	for _, tenant := range tenants {
		for _, label := range labels {
			routes = append(routes, b.grpcRoute(s, policies.Tenant(tenant), policies.DataLabel(label)))
		}
	}
	return append(routes, refuseGRPC("nobody-else"))
}

// served are the tenants that the clients may be, where that is not everybody; none where nothing says whose a request is.
func (b *builder) served() []string {
	var names []string
	if b.gateway.Spec.TenantHeader != "" {
		for _, t := range b.viewpoint.Tenants.List() {
			names = append(names, string(t))
		}
	}
	return names
}

func values[T any](groups []T, of func(T) string) []string {
	var all []string
	for _, g := range groups {
		all = append(all, of(g))
	}
	return all
}

// grpcRoute is where requests of a tenant with a label go; an empty one is any that is not named.
func (b *builder) grpcRoute(s *policies.Service, tenant policies.Tenant, label policies.DataLabel) *route.Route {
	var headers []*route.HeaderMatcher
	if tenant != "" {
		headers = append(headers, headerIs(b.gateway.Spec.TenantHeader, string(tenant)))
	}
	if label != "" {
		headers = append(headers, headerIs(b.gateway.Spec.DataLabelHeader, string(label)))
	}
	o := b.plan.Admission.Admit(s.Metadata.Name, "", tenant, label)
	if o.Refusal != nil || o.Class == "" {
		return refuseGRPC("refused", headers...)
	}
	traffic := b.set.TrafficFor(s.Metadata.Name)
	action := &route.RouteAction{RetryPolicy: &route.RetryPolicy{RetryOn: "unavailable,resource-exhausted",
		NumRetries:   uint32Value(uint32(max(*traffic.Retries.Attempts, 1))),
		RetryBackOff: &route.RetryPolicy_RetryBackOff{BaseInterval: duration(retryBase), MaxInterval: duration(retryMost)}}}
	r := &route.Route{Name: string(s.Metadata.Name) + "/" + string(o.Class), Match: anyGRPC(headers), Action: &route.Route_Route{Route: action}}
	if len(traffic.Splits) == 0 {
		action.ClusterSpecifier = &route.RouteAction_Cluster{Cluster: xds.ClassCluster(s.Metadata.Name, o.Class)}
		r.RequestHeadersToAdd = classHeaders(s.Metadata.Name, o)
		return r
	}
	action.ClusterSpecifier = &route.RouteAction_WeightedClusters{WeightedClusters: b.split(o, traffic.Splits)}
	return r
}

// refuseGRPC is a route that fails what it matches.
func refuseGRPC(name string, headers ...*route.HeaderMatcher) *route.Route {
	return &route.Route{Name: name, Match: anyGRPC(headers), Action: &route.Route_NonForwardingAction{NonForwardingAction: &route.NonForwardingAction{}}}
}

// anyGRPC matches every method. A gRPC client wants the empty prefix for it.
func anyGRPC(headers []*route.HeaderMatcher) *route.RouteMatch {
	return &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: ""}, Headers: headers}
}

func headerIs(name, value string) *route.HeaderMatcher {
	return stringHeader(name, &stringmatch.StringMatcher{MatchPattern: &stringmatch.StringMatcher_Exact{Exact: value}})
}

func containsComma(name string) *route.HeaderMatcher {
	return stringHeader(name, &stringmatch.StringMatcher{MatchPattern: &stringmatch.StringMatcher_Contains{Contains: ","}})
}

func stringHeader(name string, m *stringmatch.StringMatcher) *route.HeaderMatcher {
	return &route.HeaderMatcher{Name: name, HeaderMatchSpecifier: &route.HeaderMatcher_StringMatch{StringMatch: m}}
}

// grpcAssignment holds the servers of permitted clusters that are dialled directly: nearest first, priorities without gaps.
func (b *builder) grpcAssignment(s *policies.Service, d *plan.Decision) *endpoint.ClusterLoadAssignment {
	out := &endpoint.ClusterLoadAssignment{ClusterName: xds.ClassCluster(d.Service, d.Class)}
	standby := uint32(0)
	for _, rung := range ladder(d, false) {
		choice := rung.choice
		if !b.direct(choice.Cluster) {
			continue
		}
		hosts := b.tcpEndpoints(s, choice)
		if len(hosts) == 0 {
			continue
		}
		if choice.Role == plan.Serving {
			rung.priority = 0
		} else {
			rung.priority = standby
		}
		out.Endpoints = append(out.Endpoints, &endpoint.LocalityLbEndpoints{Locality: localityOf(choice), Priority: rung.priority,
			LoadBalancingWeight: uint32Value(max(choice.Share, 1)), LbEndpoints: hosts})
		standby = rung.priority + 1
	}
	return out
}
