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
	if len(parts) != 3 || parts[0] != "class" {
		return "", "", false
	}
	return policies.ServiceName(parts[1]), world.ClassID(parts[2]), true
}

// PoolCluster is the Envoy cluster with the endpoints of one pool.
func PoolCluster(pool world.PoolKey) string {
	return "pool/" + string(pool.Service) + "/" + string(pool.Cluster)
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

// EastWestRoutes is the route configuration of the EastWestListener.
const EastWestRoutes = "east-west"

// The request headers that only Meridian sets. They are stripped from what clients send, carried between gateways,
// and stripped again before a model server. Response headers are named in docs/reference.
const (
	HeaderService  = "x-meridian-service"
	HeaderClass    = "x-meridian-class"
	HeaderModel    = "x-meridian-model"
	HeaderCountry  = "x-meridian-country"
	HeaderCluster  = "x-meridian-cluster"
	HeaderRegion   = "x-meridian-region"
	HeaderReason   = "x-meridian-reason"
	HeaderInternal = "x-meridian-" // the prefix of all of them
)
