package build

import (
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	rawbuffer "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// tcpOutcome is what becomes of connections for a TCP service. They carry no header, so they are requests from an
// unknown country, without tenant or label: rules on the service itself pin them.
func (b *builder) tcpOutcome(s *policies.Service) (plan.Outcome, bool) {
	o := b.plan.Admission.Admit(s.Metadata.Name, "", "", "")
	return o, o.Refusal == nil && o.Class != "" && b.viewpoint.Tenants == world.AllTenants
}

// tcpListener listens for a TCP service. Where its connections are refused there is none.
func (b *builder) tcpListener(c *collector, l *policies.Listener, s *policies.Service) {
	o, ok := b.tcpOutcome(s)
	if !ok {
		return
	}
	name := xds.TCPListener(b.gateway.Metadata.Name, l.Name, s.Metadata.Name)
	c.add(xds.TypeListener, name, &listener.Listener{
		Name: name, Address: socketAddress(l.Address.String(), s.Spec.Port),
		FilterChains: []*listener.FilterChain{{TransportSocket: b.listenerTLS(c, l),
			Filters: []*listener.Filter{tcpFilter(c, name, xds.ClassCluster(s.Metadata.Name, o.Class), b.set.TrafficFor(s.Metadata.Name))}}},
	})
}

// tcpFilter connects to a cluster, trying others of its endpoints where one does not answer.
func tcpFilter(c *collector, name, to string, traffic policies.TrafficSpec) *listener.Filter {
	return &listener.Filter{Name: "envoy.filters.network.tcp_proxy", ConfigType: &listener.Filter_TypedConfig{TypedConfig: c.any(&tcpproxy.TcpProxy{
		StatPrefix: name, ClusterSpecifier: &tcpproxy.TcpProxy_Cluster{Cluster: to}, IdleTimeout: duration(traffic.IdleTimeout.Std()),
		MaxConnectAttempts: uint32Value(uint32(*traffic.Retries.Attempts) + 1),
		BackoffOptions:     &core.BackoffStrategy{BaseInterval: duration(20 * time.Millisecond), MaxInterval: duration(100 * time.Millisecond)},
	})}}
}

// viaGateway marks endpoints that are a cluster's gateways.
const viaGateway = "gateway"

// tcpClassCluster holds the servers of permitted clusters themselves, and the gateways of those that are not dialled
// directly, each behind mutual TLS under the name of service and class. It probes nothing: the control plane does, the
// gateways there probe their own servers, and a connection that fails is tried elsewhere before a byte is lost.
func (b *builder) tcpClassCluster(c *collector, s *policies.Service, class world.ClassID) *cluster.Cluster {
	out := b.bare(s, xds.ClassCluster(s.Metadata.Name, class))
	out.CircuitBreakers = breakers(unlimited)
	out.OutlierDetection = &cluster.OutlierDetection{
		Interval: duration(outlierInterval), BaseEjectionTime: duration(ejection), MaxEjectionPercent: uint32Value(100),
		SplitExternalLocalOriginErrors: true, ConsecutiveLocalOriginFailure: uint32Value(2),
	}
	for _, pool := range s.Spec.Pools {
		member, ok := b.set.Cluster(pool.Cluster)
		if !ok || b.direct(pool.Cluster) || !b.reachable(pool.Cluster) {
			continue
		}
		out.TransportSocketMatches = append(out.TransportSocketMatches, &cluster.Cluster_TransportSocketMatch{
			Name: string(pool.Cluster), Match: marker(viaGateway, string(pool.Cluster)),
			TransportSocket: b.toGateways(c, member, xds.TCPServerName(s.Metadata.Name, class)),
		})
	}
	out.TransportSocketMatches = append(out.TransportSocketMatches, &cluster.Cluster_TransportSocketMatch{
		Name: "direct", Match: &structpb.Struct{}, TransportSocket: transportSocket("envoy.transport_sockets.raw_buffer", c.any(&rawbuffer.RawBuffer{}))})
	return out
}

func marker(key, value string) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewStringValue(value)}}
}

// tcpEndpoints are the servers of a choice that are dialled from here, or its gateways.
func (b *builder) tcpEndpoints(s *policies.Service, choice *plan.Choice) []*endpoint.LbEndpoint {
	var out []*endpoint.LbEndpoint
	if b.direct(choice.Cluster) {
		if pool := b.world.Pool(world.PoolKey{Service: s.Metadata.Name, Cluster: choice.Cluster}); pool != nil {
			out = append(out, servers(pool)...)
		}
		return out
	}
	member, ok := b.set.Cluster(choice.Cluster)
	if !ok {
		return nil
	}
	for _, a := range member.Spec.Gateways {
		e := lbEndpoint(socketAddress(a.Address.String(), a.Port), choice.Healthy)
		e.Metadata = &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.transport_socket_match": marker(viaGateway, string(choice.Cluster))}}
		out = append(out, e)
	}
	return out
}

// tcpChains are the filter chains by which other gateways reach a TCP service's pool here, one for each class that may
// be served here.
func (b *builder) tcpChains(c *collector, s *policies.Service) []*listener.FilterChain {
	key := world.PoolKey{Service: s.Metadata.Name, Cluster: b.viewpoint.Cluster}
	if s.Spec.Protocol != policies.ProtocolTCP || b.world.Pool(key) == nil {
		return nil
	}
	var chains []*listener.FilterChain
	for _, class := range b.classesServedHere(s) {
		name := xds.TCPServerName(s.Metadata.Name, class)
		chains = append(chains, &listener.FilterChain{
			Name: name, FilterChainMatch: &listener.FilterChainMatch{ServerNames: []string{name}}, TransportSocket: b.fromGateways(c),
			Filters: []*listener.Filter{tcpFilter(c, xds.EastWestListener, xds.PoolCluster(key), b.set.TrafficFor(s.Metadata.Name))},
		})
	}
	return chains
}
