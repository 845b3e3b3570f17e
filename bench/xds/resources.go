package main

import (
	"fmt"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// serviceName is a service's cluster and assignment.
func serviceName(i int) string { return fmt.Sprintf("pool/service-%05d/cluster-1", i) }

// clusterOf is a service's cluster.
func clusterOf(i int) *cluster.Cluster {
	return &cluster.Cluster{
		Name: serviceName(i), ConnectTimeout: durationpb.New(1e9), ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_EDS},
		EdsClusterConfig: &cluster.Cluster_EdsClusterConfig{EdsConfig: &core.ConfigSource{ResourceApiVersion: core.ApiVersion_V3, ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}}}},
	}
}

// assignmentOf are a service's endpoints; weight is that of the first.
func assignmentOf(i, endpoints, weight int) *endpoint.ClusterLoadAssignment {
	locality := &endpoint.LocalityLbEndpoints{Locality: &core.Locality{Region: "r", Zone: "z"}, LoadBalancingWeight: wrapperspb.UInt32(1)}
	for e := range endpoints {
		locality.LbEndpoints = append(locality.LbEndpoints, &endpoint.LbEndpoint{
			LoadBalancingWeight: wrapperspb.UInt32(1),
			HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
				Address: fmt.Sprintf("10.%d.%d.%d", i/250, i%250, e+1), PortSpecifier: &core.SocketAddress_PortValue{PortValue: 8000}}}}}},
		})
	}
	locality.LbEndpoints[0].LoadBalancingWeight = wrapperspb.UInt32(uint32(weight))
	return &endpoint.ClusterLoadAssignment{ClusterName: serviceName(i), Endpoints: []*endpoint.LocalityLbEndpoints{locality}}
}

// viewName is a viewpoint, as a node's cluster.
func viewName(i int) string { return fmt.Sprintf("v%03d", i) }
