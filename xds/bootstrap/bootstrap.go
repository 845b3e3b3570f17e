package bootstrap

import (
	"fmt"
	"net/netip"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	internallistener "github.com/envoyproxy/go-control-plane/envoy/extensions/bootstrap/internal_listener/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sigs.k8s.io/yaml"

	"github.com/meridian-mesh/meridian/world"
)

// Config says who a proxy is. ID, Viewpoint and Server are required.
type Config struct {
	// ID is the node's own, unique among all proxies.
	ID string
	// Viewpoint is the proxy's role, region, cluster and tenants.
	Viewpoint world.Viewpoint
	// Servers are the addresses of Meridian's xDS port; each is a replica.
	Servers []netip.AddrPort
	// Admin is where Envoy's own admin interface listens. Zero: nowhere.
	Admin netip.AddrPort
	// Source is the address that the proxy's own connections come from. Zero: the kernel chooses.
	Source netip.Addr
	// StateOfTheWorld asks for that protocol instead of delta.
	StateOfTheWorld bool
	// TLS is how Meridian is reached. Nil: in plaintext.
	TLS *TLS
}

// serverCluster is the Envoy cluster of Meridian itself.
const serverCluster = "meridian-xds"

// New writes an Envoy bootstrap in YAML.
func New(c Config) ([]byte, error) {
	m, err := message(c)
	if err != nil {
		return nil, fmt.Errorf("write bootstrap: %w", err)
	}
	if err := m.ValidateAll(); err != nil {
		return nil, fmt.Errorf("write bootstrap: %w", err)
	}
	out, err := asYAML(m)
	if err != nil {
		return nil, fmt.Errorf("write bootstrap: %w", err)
	}
	return out, nil
}

// asYAML writes a message as Envoy reads it.
func asYAML(m proto.Message) ([]byte, error) {
	asJSON, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(asJSON)
}

func message(c Config) (*bootstrap.Bootstrap, error) {
	if c.ID == "" || len(c.Servers) == 0 {
		return nil, fmt.Errorf("a node id and at least one server are required")
	}
	internal, err := anypb.New(&internallistener.InternalListener{})
	if err != nil {
		return nil, err
	}
	servers, err := serversCluster(c)
	if err != nil {
		return nil, err
	}
	kind := core.ApiConfigSource_DELTA_GRPC
	if c.StateOfTheWorld {
		kind = core.ApiConfigSource_GRPC
	}
	ads := &core.ConfigSource{ResourceApiVersion: core.ApiVersion_V3, ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}}}
	m := &bootstrap.Bootstrap{
		Node: node(c),
		DynamicResources: &bootstrap.Bootstrap_DynamicResources{
			LdsConfig: ads, CdsConfig: ads,
			AdsConfig: grpcSource(kind),
		},
		StaticResources:     &bootstrap.Bootstrap_StaticResources{Clusters: []*cluster.Cluster{servers}},
		ClusterManager:      &bootstrap.ClusterManager{LoadStatsConfig: grpcSource(core.ApiConfigSource_GRPC)},
		BootstrapExtensions: []*core.TypedExtensionConfig{{Name: "envoy.bootstrap.internal_listener", TypedConfig: internal}},
	}
	if c.Source.IsValid() {
		m.ClusterManager.UpstreamBindConfig = &core.BindConfig{SourceAddress: socket(netip.AddrPortFrom(c.Source, 0)).GetSocketAddress()}
	}
	if c.Admin.IsValid() {
		m.Admin = &bootstrap.Admin{Address: socket(c.Admin)}
	}
	return m, nil
}

func node(c Config) *core.Node {
	metadata := map[string]*structpb.Value{"meridian.dev/role": structpb.NewStringValue(string(c.Viewpoint.Role))}
	if tenants := c.Viewpoint.Tenants.List(); len(tenants) > 0 {
		list := &structpb.ListValue{}
		for _, t := range tenants {
			list.Values = append(list.Values, structpb.NewStringValue(string(t)))
		}
		metadata["meridian.dev/tenants"] = structpb.NewListValue(list)
	}
	return &core.Node{
		Id: c.ID, Cluster: string(c.Viewpoint.Cluster),
		Locality: &core.Locality{Region: string(c.Viewpoint.Region), Zone: string(c.Viewpoint.Cluster)},
		Metadata: &structpb.Struct{Fields: metadata},
	}
}

func grpcSource(kind core.ApiConfigSource_ApiType) *core.ApiConfigSource {
	return &core.ApiConfigSource{ApiType: kind, TransportApiVersion: core.ApiVersion_V3, SetNodeOnFirstMessageOnly: true,
		GrpcServices: []*core.GrpcService{{TargetSpecifier: &core.GrpcService_EnvoyGrpc_{EnvoyGrpc: &core.GrpcService_EnvoyGrpc{ClusterName: serverCluster}}}}}
}

// serversCluster reaches Meridian over HTTP/2 with keepalive: a replica that has gone silent is left.
func serversCluster(c Config) (*cluster.Cluster, error) {
	protocol := &http.HttpProtocolOptions{UpstreamProtocolOptions: &http.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &http.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &http.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &core.Http2ProtocolOptions{
			ConnectionKeepalive: &core.KeepaliveSettings{Interval: durationpb.New(5e9), Timeout: durationpb.New(5e9)}}}}}}
	meridian := &cluster.Cluster{Name: serverCluster, ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_STATIC}, ConnectTimeout: durationpb.New(1e9)}
	if c.TLS != nil {
		if err := c.TLS.secure(meridian, protocol, c.Servers); err != nil {
			return nil, err
		}
	}
	options, err := anypb.New(protocol)
	if err != nil {
		return nil, err
	}
	var endpoints []*endpoint.LbEndpoint
	for _, s := range c.Servers {
		endpoints = append(endpoints, &endpoint.LbEndpoint{HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{Address: socket(s)}}})
	}
	meridian.TypedExtensionProtocolOptions = map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options}
	meridian.LoadAssignment = &endpoint.ClusterLoadAssignment{ClusterName: serverCluster, Endpoints: []*endpoint.LocalityLbEndpoints{{LoadBalancingWeight: wrapperspb.UInt32(1), LbEndpoints: endpoints}}}
	return meridian, nil
}

func socket(a netip.AddrPort) *core.Address {
	return &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
		Address: a.Addr().String(), PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(a.Port())}}}}
}
