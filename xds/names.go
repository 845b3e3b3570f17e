package xds

import (
	"strings"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// The names of resources. A request goes: client listener -> class cluster -> inner hop of the chosen member cluster
// -> pool cluster (here) or gateway cluster (there). See docs/architecture.md.

// ClassCluster is the Envoy cluster that holds, as one endpoint each, the member clusters permitted to serve a class.
func ClassCluster(service policies.ServiceName, class world.ClassID) string {
	return "class/" + string(service) + "/" + string(class)
}

// ParseClassCluster reads the name that ClassCluster writes; ok is false for other names.
func ParseClassCluster(name string) (service policies.ServiceName, class world.ClassID, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[0] != "class" || parts[1] == "" || parts[2] == "" {
		return "", "", false
	}
	return policies.ServiceName(parts[1]), world.ClassID(parts[2]), true
}

// PoolCluster is the Envoy cluster with the endpoints of one pool.
func PoolCluster(pool world.PoolKey) string {
	return "pool/" + string(pool.Service) + "/" + string(pool.Cluster)
}

// ParsePoolCluster is the reverse of PoolCluster.
func ParsePoolCluster(name string) (key world.PoolKey, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[0] != "pool" || parts[1] == "" || parts[2] == "" {
		return world.PoolKey{}, false
	}
	return world.PoolKey{Service: policies.ServiceName(parts[1]), Cluster: policies.ClusterName(parts[2])}, true
}

// GatewayCluster is the Envoy cluster with the east-west gateway addresses of a member cluster.
func GatewayCluster(cluster policies.ClusterName) string { return "gateway/" + string(cluster) }

// HopListener is the internal listener through which requests for a member cluster pass.
func HopListener(cluster policies.ClusterName) string { return "to/" + string(cluster) }

// HopRoutes is the route configuration of a HopListener.
func HopRoutes(cluster policies.ClusterName) string { return "to/" + string(cluster) }

// EdgeListener is a client-facing listener of a Gateway.
func EdgeListener(gateway policies.GatewayName, listener string) string {
	return "edge/" + string(gateway) + "/" + listener
}

// EdgeRoutes is the route configuration of an EdgeListener.
func EdgeRoutes(gateway policies.GatewayName, listener string) string {
	return EdgeListener(gateway, listener)
}

// TCPListener is the client-facing listener of a TCP service.
func TCPListener(gateway policies.GatewayName, listener string, service policies.ServiceName) string {
	return "tcp/" + string(gateway) + "/" + listener + "/" + string(service)
}

// EastWestListener is the listener for other clusters' gateways.
const EastWestListener = "east-west"

// GRPCListener is the listener that gRPC clients without a proxy ask for, and its route configuration: they dial
// xds:///SERVICE.
func GRPCListener(service policies.ServiceName) string { return string(service) }

// TCPServerName is the TLS server name by which one gateway asks another for a TCP service, on behalf of a class. Names of
// rules and services have no dots, so it reads back unambiguously.
func TCPServerName(service policies.ServiceName, class world.ClassID) string {
	return strings.ReplaceAll(string(class), "+", ".") + "." + string(service) + ".tcp.meridian"
}

// HTTPServerName is the TLS server name by which one gateway asks another for anything but TCP services.
const HTTPServerName = "http.meridian"

// The names of secrets. They name files on the proxy's disk.
const (
	// SecretIdentity is the proxy's own certificate towards other gateways.
	SecretIdentity = "identity"
)

// SecretListener is the certificate of a client-facing listener.
func SecretListener(gateway policies.GatewayName, listener string) string {
	return EdgeListener(gateway, listener)
}

// SecretClientCA is what a client-facing listener trusts clients' certificates by.
func SecretClientCA(gateway policies.GatewayName, listener string) string {
	return EdgeListener(gateway, listener) + "/client-ca"
}

// The metrics that servers may say of themselves in responses (ORCA), as Envoy names them in load reports.
const (
	MetricCPU         = "cpu_utilization"
	MetricMemory      = "mem_utilization"
	MetricApplication = "application_utilization"
	// MetricKVCache and MetricWaiting are vLLM's.
	MetricKVCache = "named_metrics.kv_cache_usage_perc"
	MetricWaiting = "named_metrics.num_requests_waiting"
)

// GeoServiceCluster is the Envoy cluster of the geo service.
const GeoServiceCluster = "geo-service"

// EastWestRoutes is the route configuration of the EastWestListener.
const EastWestRoutes = "east-west"

// HeaderPrefix begins every header that only Meridian sets. Such headers are stripped from what clients send, carried
// between gateways where needed, and stripped again before a model server.
const HeaderPrefix = "x-meridian-"

// The headers that only Meridian sets.
const (
	HeaderService      = "x-meridian-service"
	HeaderClass        = "x-meridian-class"
	HeaderPinned       = "x-meridian-pinned"
	HeaderModel        = "x-meridian-model"
	HeaderCountry      = "x-meridian-country"
	HeaderCountryGroup = "x-meridian-country-group"
	HeaderTenantGroup  = "x-meridian-tenant-group"
	HeaderLabelGroup   = "x-meridian-label-group"

	// These three are on responses: which cluster served, where, and why it was chosen.
	HeaderCluster = "x-meridian-cluster"
	HeaderRegion  = "x-meridian-region"
	HeaderReason  = "x-meridian-reason"
)

// LuaClearRoute is the only program that Meridian gives a proxy: it makes an Envoy that cannot be told otherwise choose the
// route anew.
const LuaClearRoute = "function envoy_on_request(handle)\n  handle:clearRouteCache()\nend\n"

// MetadataNamespace is where endpoints of a ClassCluster say their cluster, region and reason.
const MetadataNamespace = "meridian"
