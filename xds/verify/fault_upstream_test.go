package verify

import (
	"slices"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	aggregate "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	lua "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstream "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/meridian-mesh/meridian/xds"
)

func assignmentFaults(m mesh) map[string]faulty {
	return map[string]faulty{
		"hop abroad at the last priority":     {m.eds(classEU, func(a assignment) { a.Endpoints = append(a.Endpoints, standby(1, "virginia", internalTo("to/iad-1"))) }), []Code{OutsideBoundary}},
		"server abroad at the last priority":  {m.eds(classEU, func(a assignment) { a.Endpoints = append(a.Endpoints, standby(1, "virginia", lb(virginiaIP, 8000))) }), []Code{OutsideBoundary}},
		"gateway abroad at the last priority": {m.eds(classEU, func(a assignment) { a.Endpoints = append(a.Endpoints, standby(1, "virginia", lb(virginiaGW, 9443))) }), []Code{OutsideBoundary, PeerNotAuthenticated, WrongClass}},
		"locality that lies about its region": {m.eds(classEU, func(a assignment) { a.Endpoints = append(a.Endpoints, standby(1, "frankfurt", lb(virginiaIP, 8000))) }), []Code{OutsideBoundary}},
		"unhealthy server abroad": {m.eds(classEU, func(a assignment) {
			e := lb(virginiaIP, 8000)
			e.HealthStatus = core.HealthStatus_UNHEALTHY
			a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, e)
		}), []Code{OutsideBoundary}},
		"additional address abroad": {m.eds(poolHere, func(a assignment) {
			e := a.Endpoints[0].LbEndpoints[0].GetEndpoint()
			e.AdditionalAddresses = []*endpoint.Endpoint_AdditionalAddress{{Address: socketTo(virginiaIP, 8000)}}
		}), []Code{CrossesTwice, OutsideBoundary}},
		"health checks sent abroad": {m.eds(poolHere, func(a assignment) {
			a.Endpoints[0].LbEndpoints[0].GetEndpoint().HealthCheckConfig = &endpoint.Endpoint_HealthCheckConfig{Address: socketTo(virginiaIP, 8000)}
		}), []Code{CrossesTwice, OutsideBoundary}},
		"server abroad in the pool here": {m.eds(poolHere, func(a assignment) {
			a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, lb(virginiaIP, 8000))
		}), []Code{CrossesTwice, OutsideBoundary}},
		"address that nobody knows": {m.eds(poolHere, func(a assignment) {
			a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, lb("127.99.9.9", 80))
		}), []Code{UnknownAddress}},
		"port that nobody knows": {m.eds(poolHere, func(a assignment) {
			a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, lb(virginiaIP, 8001))
		}), []Code{UnknownAddress}},
		"host name": {m.eds(poolHere, func(a assignment) {
			a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, lb("example.org", 80))
		}), []Code{NotAnalysable}},
		"pipe": {m.eds(poolHere, func(a assignment) {
			a.Endpoints[0].LbEndpoints[0].GetEndpoint().Address = &core.Address{Address: &core.Address_Pipe{Pipe: &core.Pipe{Path: "/x"}}}
		}), []Code{NotAnalysable}},
		"hop that is not there":   {m.eds(classEU, func(a assignment) { a.Endpoints[0].LbEndpoints = []*endpoint.LbEndpoint{internalTo("to/nowhere")} }), []Code{Dangling}},
		"gap between priorities":  {m.eds(classAny, func(a assignment) { a.Endpoints[len(a.Endpoints)-1].Priority = 7 }), []Code{PriorityGap}},
		"locality without weight": {m.eds(classAny, func(a assignment) { a.Endpoints[0].LoadBalancingWeight = nil }), []Code{Invalid}},
		"endpoints missing":       {without(m.frankfurt, xds.TypeEndpoint, classEU), []Code{Dangling}},

		"server of another service": {m.eds(poolHere, func(a assignment) {
			a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, lb("127.10.1.3", 9000))
		}), []Code{WrongService}},
		"gateway of another cluster": {m.eds("gateway/iad-1", func(a assignment) {
			a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, lb("127.10.0.1", 9443))
		}), []Code{OutsideBoundary, PeerNotAuthenticated}},
		"gateway that nobody knows": {m.eds("gateway/iad-1", func(a assignment) {
			a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, lb("127.66.0.1", 9443))
		}), []Code{UnknownAddress}},
		"TCP gateway without its mark": {m.eds("class/queue/any", func(a assignment) {
			for _, l := range a.Endpoints {
				l.LbEndpoints[0].Metadata = nil
			}
		}), []Code{PeerNotAuthenticated, WrongClass}},
		"endpoints that come from elsewhere": {m.eds(classEU, func(a assignment) {
			a.Endpoints[0].LbEndpoints = nil
			a.Endpoints[0].LbConfig = &endpoint.LocalityLbEndpoints_LedsClusterLocalityConfig{LedsClusterLocalityConfig: &endpoint.LedsClusterLocalityConfig{
				LedsConfig: &core.ConfigSource{ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}}}, LedsCollectionName: "x"}}
		}), []Code{NotAnalysable}},
		"overprovisioning that is not known": {m.eds(classEU, func(a assignment) {
			a.Policy = &endpoint.ClusterLoadAssignment_Policy{WeightedPriorityHealth: true}
		}), []Code{NotAnalysable}},
	}
}

func clusterFaults(m mesh) map[string]faulty {
	return map[string]faulty{
		"panic left on": {m.cds(classEU, func(c *cluster.Cluster) { c.CommonLbConfig.HealthyPanicThreshold = nil }), []Code{PanicEnabled}},
		"panic at half": {m.cds(classEU, func(c *cluster.Cluster) { c.CommonLbConfig.HealthyPanicThreshold = &envoytype.Percent{Value: 50} }), []Code{PanicEnabled}},
		"DNS cluster": {m.cds(classEU, func(c *cluster.Cluster) {
			c.ClusterDiscoveryType = &cluster.Cluster_Type{Type: cluster.Cluster_STRICT_DNS}
		}), []Code{NotAnalysable}},
		"original destination": {m.cds(classEU, func(c *cluster.Cluster) {
			c.ClusterDiscoveryType = &cluster.Cluster_Type{Type: cluster.Cluster_ORIGINAL_DST}
		}), []Code{NotAnalysable}},
		"static server abroad": {m.cds(classEU, func(c *cluster.Cluster) {
			c.ClusterDiscoveryType, c.EdsClusterConfig = &cluster.Cluster_Type{Type: cluster.Cluster_STATIC}, nil
			c.LoadAssignment = &endpoint.ClusterLoadAssignment{ClusterName: classEU, Endpoints: []*endpoint.LocalityLbEndpoints{standby(0, "frankfurt", lb(virginiaIP, 8000))}}
		}), []Code{OutsideBoundary}},
		"aggregate with a fallback abroad": {m.cds(classEU, func(c *cluster.Cluster) {
			c.EdsClusterConfig = nil
			c.ClusterDiscoveryType = &cluster.Cluster_ClusterType{ClusterType: &cluster.Cluster_CustomClusterType{Name: "envoy.clusters.aggregate",
				TypedConfig: pack(&aggregate.ClusterConfig{Clusters: []string{poolHere, classAny}})}}
		}), []Code{OutsideBoundary}},
		"custom cluster": {m.cds(classEU, func(c *cluster.Cluster) {
			c.ClusterDiscoveryType = &cluster.Cluster_ClusterType{ClusterType: &cluster.Cluster_CustomClusterType{Name: "x", TypedConfig: pack(&lua.Lua{})}}
		}), []Code{NotAnalysable}},
		"endpoints of another class": {m.cds(classEU, func(c *cluster.Cluster) { c.EdsClusterConfig.ServiceName = classAny }), []Code{OutsideBoundary}},
		"endpoints from a file": {m.cds(classEU, func(c *cluster.Cluster) {
			c.EdsClusterConfig.EdsConfig = &core.ConfigSource{ConfigSourceSpecifier: &core.ConfigSource_PathConfigSource{PathConfigSource: &core.PathConfigSource{Path: "/x"}}}
		}), []Code{NotAnalysable}},
		"subset that falls back to any host": {m.cds(classEU, func(c *cluster.Cluster) {
			c.LbSubsetConfig = &cluster.Cluster_LbSubsetConfig{FallbackPolicy: cluster.Cluster_LbSubsetConfig_ANY_ENDPOINT}
		}), []Code{NotAnalysable}},
		"load balancer that is not known": {m.cds(classEU, func(c *cluster.Cluster) {
			c.LoadBalancingPolicy = &cluster.LoadBalancingPolicy{Policies: []*cluster.LoadBalancingPolicy_Policy{{TypedExtensionConfig: &core.TypedExtensionConfig{Name: "x", TypedConfig: pack(&lua.Lua{})}}}}
		}), []Code{NotAnalysable}},
		"cluster that mirrors": {m.cds(classEU, func(c *cluster.Cluster) {
			c.TypedExtensionProtocolOptions["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"] = pack(&upstream.HttpProtocolOptions{
				UpstreamProtocolOptions: &upstream.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &upstream.HttpProtocolOptions_ExplicitHttpConfig{ProtocolConfig: &upstream.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{}}},
				RequestMirrorPolicies:   []*route.RouteAction_RequestMirrorPolicy{{Cluster: classAny}}})
		}), []Code{NotAnalysable}},
		"cluster missing":           {without(m.frankfurt, xds.TypeCluster, classEU), []Code{Dangling}},
		"cluster that is not valid": {m.cds(classEU, func(c *cluster.Cluster) { c.ConnectTimeout.Seconds = -5 }), []Code{Invalid}},

		"gateway without TLS": {m.cds("gateway/iad-1", func(c *cluster.Cluster) { c.TransportSocket = nil }), []Code{PeerNotAuthenticated, WrongClass}},
		"gateway of a stranger trusted": {m.cds("gateway/iad-1", func(c *cluster.Cluster) {
			upstreamTLS(c.TransportSocket, func(u *tls.UpstreamTlsContext) { trust(u.CommonTlsContext, "stranger") })
		}), []Code{PeerNotAuthenticated}},
		"gateway whose identity is not checked": {m.cds("gateway/iad-1", func(c *cluster.Cluster) {
			upstreamTLS(c.TransportSocket, func(u *tls.UpstreamTlsContext) { u.CommonTlsContext.ValidationContextType = nil })
		}), []Code{PeerNotAuthenticated}},
		"no certificate for a gateway": {m.cds("gateway/iad-1", func(c *cluster.Cluster) {
			upstreamTLS(c.TransportSocket, func(u *tls.UpstreamTlsContext) { u.CommonTlsContext.TlsCertificateSdsSecretConfigs = nil })
		}), []Code{PeerNotAuthenticated}},
		"TCP gateways asked for another class": {m.cds("class/queue/any", func(c *cluster.Cluster) {
			upstreamTLS(c.TransportSocketMatches[0].TransportSocket, func(u *tls.UpstreamTlsContext) { u.Sni = xds.TCPServerName("vectors", "vectors-stay") })
		}), []Code{WrongClass}},
		"custom health checker": {m.cds(poolHere, func(c *cluster.Cluster) {
			c.HealthChecks[0].HealthChecker = &core.HealthCheck_CustomHealthCheck_{CustomHealthCheck: &core.HealthCheck_CustomHealthCheck{Name: "x"}}
		}), []Code{NotAnalysable}},
		"upstream Lua": {m.cds(poolHere, func(c *cluster.Cluster) {
			upstreamHTTP(c, func(o *upstream.HttpProtocolOptions) {
				o.HttpFilters = append([]*hcm.HttpFilter{{Name: "lua", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&lua.Lua{})}}}, o.HttpFilters...)
			})
		}), []Code{NotAnalysable}},
		"upstream headers set": {m.cds("gateway/iad-1", func(c *cluster.Cluster) {
			upstreamHTTP(c, func(o *upstream.HttpProtocolOptions) {
				o.HttpFilters = []*hcm.HttpFilter{setsHeader(xds.HeaderClass, "any")}
			})
		}), []Code{NotAnalysable}},
		"field of a newer API": {with(m.frankfurt, xds.Serialised(xds.TypeCluster, classEU, "newer",
			append(slices.Clone(m.frankfurt.Resource(xds.TypeCluster, classEU).Bytes), 0xf8, 0x7f, 1))), []Code{NotAnalysable}},
	}
}

// upstreamTLS changes the TLS context of a transport socket.
func upstreamTLS(socket *core.TransportSocket, fault func(*tls.UpstreamTlsContext)) {
	c := &tls.UpstreamTlsContext{}
	if socket.GetTypedConfig().UnmarshalTo(c) == nil {
		fault(c)
		socket.ConfigType = &core.TransportSocket_TypedConfig{TypedConfig: pack(c)}
	}
}

// trust makes a context trust one SPIFFE trust domain more.
func trust(common *tls.CommonTlsContext, domain string) {
	v, s := common.GetValidationContext().CustomValidatorConfig, &tls.SPIFFECertValidatorConfig{}
	if v.TypedConfig.UnmarshalTo(s) == nil {
		s.TrustDomains = append(s.TrustDomains, &tls.SPIFFECertValidatorConfig_TrustDomain{Name: domain, TrustBundle: s.TrustDomains[0].TrustBundle})
		v.TypedConfig = pack(s)
	}
}

// upstreamHTTP changes the HTTP options of a cluster.
func upstreamHTTP(c *cluster.Cluster, fault func(*upstream.HttpProtocolOptions)) {
	o := &upstream.HttpProtocolOptions{}
	for key, options := range c.TypedExtensionProtocolOptions {
		if options.UnmarshalTo(o) == nil {
			fault(o)
			c.TypedExtensionProtocolOptions[key] = pack(o)
		}
	}
}
