package serve

import (
	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	extensionservice "github.com/envoyproxy/go-control-plane/envoy/service/extension/v3"
	listenerservice "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	routeservice "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	runtimeservice "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	secretservice "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/grpc"

	"github.com/meridian-mesh/meridian/xds"
)

// Register offers the aggregated discovery service and one for each type, both protocols each. The gRPC server must have
// been made with the server's Options.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	discovery.RegisterAggregatedDiscoveryServiceServer(r, aggregated{s: s})
	clusterservice.RegisterClusterDiscoveryServiceServer(r, clusters{s: s})
	endpointservice.RegisterEndpointDiscoveryServiceServer(r, endpoints{s: s})
	listenerservice.RegisterListenerDiscoveryServiceServer(r, listeners{s: s})
	routeservice.RegisterRouteDiscoveryServiceServer(r, routes{s: s})
	routeservice.RegisterScopedRoutesDiscoveryServiceServer(r, scopedRoutes{s: s})
	routeservice.RegisterVirtualHostDiscoveryServiceServer(r, virtualHosts{s: s})
	secretservice.RegisterSecretDiscoveryServiceServer(r, secrets{s: s})
	extensionservice.RegisterExtensionConfigDiscoveryServiceServer(r, extensions{s: s})
	runtimeservice.RegisterRuntimeDiscoveryServiceServer(r, runtimes{s: s})
}

type aggregated struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	s *Server
}

func (a aggregated) StreamAggregatedResources(out discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return a.s.run(out, true, "")
}

func (a aggregated) DeltaAggregatedResources(out discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return a.s.run(out, false, "")
}

type clusters struct {
	clusterservice.UnimplementedClusterDiscoveryServiceServer
	s *Server
}

func (c clusters) StreamClusters(out clusterservice.ClusterDiscoveryService_StreamClustersServer) error {
	return c.s.run(out, true, xds.TypeCluster)
}

func (c clusters) DeltaClusters(out clusterservice.ClusterDiscoveryService_DeltaClustersServer) error {
	return c.s.run(out, false, xds.TypeCluster)
}

type endpoints struct {
	endpointservice.UnimplementedEndpointDiscoveryServiceServer
	s *Server
}

func (e endpoints) StreamEndpoints(out endpointservice.EndpointDiscoveryService_StreamEndpointsServer) error {
	return e.s.run(out, true, xds.TypeEndpoint)
}

func (e endpoints) DeltaEndpoints(out endpointservice.EndpointDiscoveryService_DeltaEndpointsServer) error {
	return e.s.run(out, false, xds.TypeEndpoint)
}

type listeners struct {
	listenerservice.UnimplementedListenerDiscoveryServiceServer
	s *Server
}

func (l listeners) StreamListeners(out listenerservice.ListenerDiscoveryService_StreamListenersServer) error {
	return l.s.run(out, true, xds.TypeListener)
}

func (l listeners) DeltaListeners(out listenerservice.ListenerDiscoveryService_DeltaListenersServer) error {
	return l.s.run(out, false, xds.TypeListener)
}

type routes struct {
	routeservice.UnimplementedRouteDiscoveryServiceServer
	s *Server
}

func (r routes) StreamRoutes(out routeservice.RouteDiscoveryService_StreamRoutesServer) error {
	return r.s.run(out, true, xds.TypeRoute)
}

func (r routes) DeltaRoutes(out routeservice.RouteDiscoveryService_DeltaRoutesServer) error {
	return r.s.run(out, false, xds.TypeRoute)
}

type scopedRoutes struct {
	routeservice.UnimplementedScopedRoutesDiscoveryServiceServer
	s *Server
}

func (r scopedRoutes) StreamScopedRoutes(out routeservice.ScopedRoutesDiscoveryService_StreamScopedRoutesServer) error {
	return r.s.run(out, true, xds.TypeScopedRoute)
}

func (r scopedRoutes) DeltaScopedRoutes(out routeservice.ScopedRoutesDiscoveryService_DeltaScopedRoutesServer) error {
	return r.s.run(out, false, xds.TypeScopedRoute)
}

type virtualHosts struct {
	routeservice.UnimplementedVirtualHostDiscoveryServiceServer
	s *Server
}

func (v virtualHosts) DeltaVirtualHosts(out routeservice.VirtualHostDiscoveryService_DeltaVirtualHostsServer) error {
	return v.s.run(out, false, xds.TypeVirtualHost)
}

type secrets struct {
	secretservice.UnimplementedSecretDiscoveryServiceServer
	s *Server
}

func (c secrets) StreamSecrets(out secretservice.SecretDiscoveryService_StreamSecretsServer) error {
	return c.s.run(out, true, xds.TypeSecret)
}

func (c secrets) DeltaSecrets(out secretservice.SecretDiscoveryService_DeltaSecretsServer) error {
	return c.s.run(out, false, xds.TypeSecret)
}

type extensions struct {
	extensionservice.UnimplementedExtensionConfigDiscoveryServiceServer
	s *Server
}

func (e extensions) StreamExtensionConfigs(out extensionservice.ExtensionConfigDiscoveryService_StreamExtensionConfigsServer) error {
	return e.s.run(out, true, xds.TypeExtension)
}

func (e extensions) DeltaExtensionConfigs(out extensionservice.ExtensionConfigDiscoveryService_DeltaExtensionConfigsServer) error {
	return e.s.run(out, false, xds.TypeExtension)
}

type runtimes struct {
	runtimeservice.UnimplementedRuntimeDiscoveryServiceServer
	s *Server
}

func (r runtimes) StreamRuntime(out runtimeservice.RuntimeDiscoveryService_StreamRuntimeServer) error {
	return r.s.run(out, true, xds.TypeRuntime)
}

func (r runtimes) DeltaRuntime(out runtimeservice.RuntimeDiscoveryService_DeltaRuntimeServer) error {
	return r.s.run(out, false, xds.TypeRuntime)
}
