package build

import (
	"slices"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	codec "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/upstream_codec/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// edsCluster is a cluster with endpoints over ADS, least request, panic off. Changes are taken at once: Envoy would
// otherwise merge those of health for a second.
func edsCluster(name string, connectTimeout time.Duration) *cluster.Cluster {
	return &cluster.Cluster{
		Name:                          name,
		ClusterDiscoveryType:          &cluster.Cluster_Type{Type: cluster.Cluster_EDS},
		EdsClusterConfig:              &cluster.Cluster_EdsClusterConfig{EdsConfig: overADS()},
		ConnectTimeout:                duration(connectTimeout),
		PerConnectionBufferLimitBytes: uint32Value(connectionBuffer),
		LbPolicy:                      cluster.Cluster_LEAST_REQUEST,
		CommonLbConfig:                &cluster.Cluster_CommonLbConfig{HealthyPanicThreshold: &envoytype.Percent{Value: 0}, UpdateMergeWindow: duration(0)},
	}
}

// breakers hold a cluster to a number of requests at a time. Retries have their own bounds.
func breakers(requests uint32) *cluster.CircuitBreakers {
	return &cluster.CircuitBreakers{Thresholds: []*cluster.CircuitBreakers_Thresholds{{
		MaxConnections: uint32Value(unlimited), MaxPendingRequests: uint32Value(requests), MaxRequests: uint32Value(requests), MaxRetries: uint32Value(unlimited),
	}}}
}

const httpProtocolOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// http2 speaks HTTP/2; keepalive finds a peer that has gone silent, and fails its requests so that they are retried.
func http2(c *collector, keepalive bool, filters ...*hcm.HttpFilter) map[string]*anypb.Any {
	h2 := &core.Http2ProtocolOptions{}
	if keepalive {
		h2.ConnectionKeepalive = &core.KeepaliveSettings{Interval: duration(keepaliveInterval), Timeout: duration(keepaliveTimeout), ConnectionIdleInterval: duration(keepaliveInterval)}
	}
	return protocol(c, &http.HttpProtocolOptions_ExplicitHttpConfig{ProtocolConfig: &http.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: h2}}, filters)
}

func http1(c *collector, filters ...*hcm.HttpFilter) map[string]*anypb.Any {
	return protocol(c, &http.HttpProtocolOptions_ExplicitHttpConfig{ProtocolConfig: &http.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: &core.Http1ProtocolOptions{}}}, filters)
}

func protocol(c *collector, explicit *http.HttpProtocolOptions_ExplicitHttpConfig, filters []*hcm.HttpFilter) map[string]*anypb.Any {
	return map[string]*anypb.Any{httpProtocolOptions: c.any(&http.HttpProtocolOptions{
		UpstreamProtocolOptions: &http.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: explicit}, HttpFilters: filters})}
}

// poolClusters builds a cluster for each pool whose endpoints are dialled from here.
func (b *builder) poolClusters(c *collector, dialled []int) {
	for _, i := range dialled {
		key := b.world.Pools()[i].Key
		s, ok := b.set.Service(key.Service)
		if ok {
			c.add(xds.TypeCluster, xds.PoolCluster(key), b.poolCluster(c, s, b.world.Pool(key)))
		}
	}
}

// poolCluster chooses between the servers of one pool. Its circuit breaker is the pool's capacity: what is beyond goes to
// the next cluster at once.
func (b *builder) poolCluster(c *collector, s *policies.Service, p *world.Pool) *cluster.Cluster {
	out := edsCluster(xds.PoolCluster(p.Key), b.set.TrafficFor(s.Metadata.Name).Retries.ConnectTimeout.Std())
	out.CircuitBreakers = breakers(capacityOf(s, p))
	out.OutlierDetection = &cluster.OutlierDetection{
		Interval: duration(outlierInterval), BaseEjectionTime: duration(ejection), MaxEjectionPercent: uint32Value(100),
		Consecutive_5Xx: uint32Value(5), ConsecutiveGatewayFailure: uint32Value(3), EnforcingConsecutiveGatewayFailure: uint32Value(100),
		EnforcingSuccessRate: uint32Value(0), SplitExternalLocalOriginErrors: true,
		ConsecutiveLocalOriginFailure: uint32Value(2), EnforcingLocalOriginSuccessRate: uint32Value(0),
	}
	out.HealthChecks = []*core.HealthCheck{healthCheck(s)}
	out.CloseConnectionsOnHostHealthFailure = true
	out.IgnoreHealthOnHostRemoval = true
	switch s.Spec.Protocol {
	case policies.ProtocolTCP:
	case policies.ProtocolGRPC:
		out.TypedExtensionProtocolOptions = http2(c, true, b.lastFilters(c)...)
	default:
		out.TypedExtensionProtocolOptions = http1(c, b.lastFilters(c)...)
	}
	return out
}

// lastFilters strip what gateways tell each other before a server sees the request. They run after the choice of the
// server, so that Envoy's own answers can still tell a pinned request from another.
func (b *builder) lastFilters(c *collector) []*hcm.HttpFilter {
	return []*hcm.HttpFilter{b.stripForged(c), httpFilter(c, "envoy.filters.http.upstream_codec", &codec.UpstreamCodec{})}
}

// capacityOf is how many requests a pool takes at a time, waiting ones included.
func capacityOf(s *policies.Service, p *world.Pool) uint32 {
	each := s.Spec.Capacity.SlotsPerEndpoint + s.Spec.Capacity.QueuePerEndpoint
	return uint32(min(each*len(p.Endpoints), unlimited))
}

// healthCheck probes servers from the gateways of their own cluster.
func healthCheck(s *policies.Service) *core.HealthCheck {
	h := s.Spec.Health
	out := &core.HealthCheck{
		Interval: duration(h.Interval.Std()), NoTrafficInterval: duration(h.Interval.Std()), Timeout: duration(h.Timeout.Std()),
		UnhealthyThreshold: uint32Value(uint32(h.UnhealthyThreshold)), HealthyThreshold: uint32Value(uint32(h.HealthyThreshold)),
		UnhealthyEdgeInterval: duration(h.Interval.Std()),
	}
	switch h.Type {
	case policies.HealthHTTP:
		out.HealthChecker = &core.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &core.HealthCheck_HttpHealthCheck{Path: h.Path, Host: healthCheckHost}}
	case policies.HealthGRPC:
		out.HealthChecker = &core.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &core.HealthCheck_GrpcHealthCheck{ServiceName: h.Service, Authority: healthCheckHost}}
	default:
		out.HealthChecker = &core.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &core.HealthCheck_TcpHealthCheck{}}
	}
	return out
}

// healthCheckHost is the host header of health checks; Envoy's default, the cluster's name, is no host name.
const healthCheckHost = "health.meridian"

// poolEndpoints is the assignment of a pool; resource is nil until somebody dials it.
type poolEndpoints struct {
	pool     *world.Pool
	resource *xds.Resource
}

// poolAssignment lists a pool's servers. It depends on the pool alone, so all viewpoints that dial it share it.
func (b *builder) poolAssignment(c *collector, made *poolEndpoints) {
	if p := made.pool; made.resource == nil {
		out := &endpoint.ClusterLoadAssignment{ClusterName: xds.PoolCluster(p.Key)}
		locality := &endpoint.LocalityLbEndpoints{Locality: &core.Locality{Zone: string(p.Key.Cluster)}, LoadBalancingWeight: uint32Value(1), LbEndpoints: servers(p)}
		out.Endpoints = []*endpoint.LocalityLbEndpoints{locality}
		var err error
		if made.resource, err = xds.NewResource(xds.TypeEndpoint, out.ClusterName, out); err != nil {
			c.fail(err)
			return
		}
	}
	c.keep(made.resource)
}

// servers are a pool's endpoints. What is about to end is drained while there is something better: Envoy sends it nothing new,
// and lets what is under way end.
func servers(p *world.Pool) []*endpoint.LbEndpoint {
	healthy := func(e world.Endpoint) bool { return p.VerdictOf(&e) == world.Healthy }
	better := slices.ContainsFunc(p.Endpoints, healthy)
	out := make([]*endpoint.LbEndpoint, len(p.Endpoints))
	for i := range p.Endpoints {
		e := &p.Endpoints[i]
		out[i] = lbEndpoint(socketAddress(e.Address.Addr().String(), e.Address.Port()), p.VerdictOf(e) != world.Unhealthy)
		if e.Condition == world.Terminating && better {
			out[i].HealthStatus = core.HealthStatus_DRAINING
		}
	}
	return out
}

// gatewayClusters builds a cluster for the gateways of each member cluster that is not dialled directly.
func (b *builder) gatewayClusters(c *collector) {
	for _, name := range b.members() {
		member, ok := b.set.Cluster(name)
		if !ok || b.direct(name) {
			continue
		}
		out := edsCluster(xds.GatewayCluster(name), time.Second)
		out.CircuitBreakers = breakers(unlimited)
		out.TransportSocket = b.toGateways(c, member, xds.HTTPServerName, "h2")
		out.TypedExtensionProtocolOptions = http2(c, true)
		out.OutlierDetection = &cluster.OutlierDetection{
			Interval: duration(outlierInterval), BaseEjectionTime: duration(ejection), MaxEjectionPercent: uint32Value(100),
			EnforcingConsecutive_5Xx: uint32Value(0), EnforcingConsecutiveGatewayFailure: uint32Value(0), EnforcingSuccessRate: uint32Value(0),
			SplitExternalLocalOriginErrors: true, ConsecutiveLocalOriginFailure: uint32Value(3), EnforcingLocalOriginSuccessRate: uint32Value(0),
		}
		c.add(xds.TypeCluster, out.Name, out)
		c.add(xds.TypeEndpoint, out.Name, gatewayAssignment(member))
	}
}

func gatewayAssignment(member *policies.Cluster) *endpoint.ClusterLoadAssignment {
	locality := &endpoint.LocalityLbEndpoints{Locality: &core.Locality{Region: string(member.Spec.Region), Zone: string(member.Metadata.Name)}, LoadBalancingWeight: uint32Value(1)}
	for _, a := range member.Spec.Gateways {
		locality.LbEndpoints = append(locality.LbEndpoints, lbEndpoint(socketAddress(a.Address.String(), a.Port), true))
	}
	return &endpoint.ClusterLoadAssignment{ClusterName: xds.GatewayCluster(member.Metadata.Name), Endpoints: []*endpoint.LocalityLbEndpoints{locality}}
}

// geoService builds the cluster of the geo service, where locations are asked there.
func (b *builder) geoService(c *collector) {
	l := b.gateway.Spec.Location
	if l.Source != policies.LocationGeoService {
		return
	}
	out := edsCluster(xds.GeoServiceCluster, geoServiceTimeout)
	out.TypedExtensionProtocolOptions = http2(c, true)
	c.add(xds.TypeCluster, out.Name, out)
	c.add(xds.TypeEndpoint, out.Name, &endpoint.ClusterLoadAssignment{ClusterName: out.Name, Endpoints: []*endpoint.LocalityLbEndpoints{{
		LoadBalancingWeight: uint32Value(1), LbEndpoints: []*endpoint.LbEndpoint{lbEndpoint(socketAddress(l.Service.Address.String(), l.Service.Port), true)}}}})
}
