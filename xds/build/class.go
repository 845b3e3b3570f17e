package build

import (
	"slices"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	upstream "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/internal_upstream/v3"
	rawbuffer "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// classClusters builds, for each class of each service, the cluster that chooses between member clusters.
func (b *builder) classClusters(c *collector) {
	for i := range b.set.Services {
		s := &b.set.Services[i]
		for _, class := range b.plan.Admission.Classes(s.Metadata.Name) {
			name := xds.ClassCluster(s.Metadata.Name, class)
			if s.Spec.Protocol == policies.ProtocolTCP {
				c.add(xds.TypeCluster, name, b.tcpClassCluster(c, s, class))
				continue
			}
			c.add(xds.TypeCluster, name, b.classCluster(c, s, name))
		}
	}
}

// classCluster speaks HTTP/2 to the inner hops. It holds nothing back: each pool has its own circuit breaker behind its
// hop. It ejects a member that keeps failing, so that requests need not find out one by one.
func (b *builder) classCluster(c *collector, s *policies.Service, name string) *cluster.Cluster {
	out := b.bare(s, name)
	out.CircuitBreakers = breakers(unlimited)
	out.TypedExtensionProtocolOptions = http2(c, false)
	out.TransportSocket = transportSocket("envoy.transport_sockets.internal_upstream", c.any(&upstream.InternalUpstreamTransport{
		TransportSocket: transportSocket("envoy.transport_sockets.raw_buffer", c.any(&rawbuffer.RawBuffer{}))}))
	out.OutlierDetection = &cluster.OutlierDetection{
		Interval: duration(outlierInterval), BaseEjectionTime: duration(ejection), MaxEjectionTime: duration(5 * ejection), MaxEjectionPercent: uint32Value(100),
		EnforcingConsecutive_5Xx: uint32Value(0), ConsecutiveGatewayFailure: uint32Value(10), EnforcingConsecutiveGatewayFailure: uint32Value(100),
		EnforcingSuccessRate: uint32Value(0),
	}
	return out
}

// bare is what all clusters with permitted members share: endpoints over ADS, priorities with weighted localities, panic
// off, so that no local reaction crosses a boundary, and load reports to us.
func (b *builder) bare(s *policies.Service, name string) *cluster.Cluster {
	traffic := b.set.TrafficFor(s.Metadata.Name)
	out := edsCluster(name, traffic.Retries.ConnectTimeout.Std())
	out.CommonLbConfig.LocalityConfigSpecifier = &cluster.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{LocalityWeightedLbConfig: &cluster.Cluster_CommonLbConfig_LocalityWeightedLbConfig{}}
	out.LrsReportEndpointMetrics = []string{xds.MetricCPU, xds.MetricMemory, xds.MetricApplication, xds.MetricKVCache, xds.MetricWaiting}
	out.LrsServer = &core.ConfigSource{ResourceApiVersion: core.ApiVersion_V3, ConfigSourceSpecifier: &core.ConfigSource_Self{Self: &core.SelfConfigSource{}}}
	return out
}

// classEndpoints is the assignment of a decision, kept with what else it was made from: nothing mostly, and then pools is nil.
type classEndpoints struct {
	pools    []*world.Pool
	resource *xds.Resource
}

// classAssignment gives each permitted member cluster its priority and share; nil where the viewpoint has no use for that. known is
// what was made of the same decision under the same policies; nil for nothing.
func (b *builder) classAssignment(c *collector, d *plan.Decision, known *classEndpoints) *classEndpoints {
	if known != nil && known.pools == nil {
		return known
	}
	s, ok := b.set.Service(d.Service)
	if !ok || b.proxyless() && !callable(s) {
		return nil
	}
	var pools []*world.Pool
	if s.Spec.Protocol == policies.ProtocolTCP || b.proxyless() {
		pools = b.world.PoolsOf(d.Service)
	}
	if known != nil && slices.Equal(known.pools, pools) {
		return known
	}
	r, err := xds.NewResource(xds.TypeEndpoint, xds.ClassCluster(d.Service, d.Class), b.assignment(s, d))
	if err != nil {
		c.fail(err)
		return nil
	}
	return &classEndpoints{pools, r}
}

func (b *builder) assignment(s *policies.Service, d *plan.Decision) *endpoint.ClusterLoadAssignment {
	if b.proxyless() {
		return b.grpcAssignment(s, d)
	}
	out := &endpoint.ClusterLoadAssignment{ClusterName: xds.ClassCluster(d.Service, d.Class)}
	for _, rung := range ladder(d, s.Spec.Protocol != policies.ProtocolTCP) {
		if b.reachable(rung.choice.Cluster) {
			out.Endpoints = append(out.Endpoints, b.locality(s, rung))
		}
	}
	return out
}

// localityOf is a member cluster: its zone is the cluster's name, so that load reports say who served.
func localityOf(choice *plan.Choice) *core.Locality {
	return &core.Locality{Region: string(choice.Region), Zone: string(choice.Cluster)}
}

// rung is a choice at a priority. again says that it stands at priority 0 already.
type rung struct {
	choice   *plan.Choice
	priority uint32
	again    bool
}

// ladder lists choices by priority. Envoy retries at the next priority, so where several share priority 0 each of them
// stands below once more, the smallest share first: a request that failed at one of them finds the others before those
// that only stand by. TCP, where servers stand themselves, is connected to others without that: repeat is false.
func ladder(d *plan.Decision, repeat bool) []rung {
	var serving, below []rung
	for i := range d.Choices {
		if d.Choices[i].Role == plan.Serving {
			serving = append(serving, rung{choice: &d.Choices[i]})
		}
	}
	if repeat && len(serving) > 1 {
		for _, r := range slices.Backward(serving) {
			below = append(below, rung{choice: r.choice, again: true})
		}
	}
	for i := range d.Choices {
		if d.Choices[i].Role == plan.Standby {
			below = append(below, rung{choice: &d.Choices[i]})
		}
	}
	for i := range below {
		below[i].priority = uint32(i + 1)
	}
	return append(serving, below...)
}

// locality is one member cluster.
func (b *builder) locality(s *policies.Service, r rung) *endpoint.LocalityLbEndpoints {
	choice := r.choice
	out := &endpoint.LocalityLbEndpoints{
		Locality:            localityOf(choice),
		Priority:            r.priority,
		LoadBalancingWeight: uint32Value(max(choice.Share, 1)),
	}
	if s.Spec.Protocol == policies.ProtocolTCP {
		out.LbEndpoints = b.tcpEndpoints(s, choice)
		return out
	}
	out.LbEndpoints = []*endpoint.LbEndpoint{lbEndpoint(hopAddress(choice.Cluster, r.again), choice.Healthy)}
	out.LbEndpoints[0].Metadata = &core.Metadata{FilterMetadata: map[string]*structpb.Struct{xds.MetadataNamespace: choiceMetadata(choice)}}
	return out
}

// choiceMetadata is what response headers say about a choice.
func choiceMetadata(choice *plan.Choice) *structpb.Struct {
	reason := ""
	if len(choice.Reasons) > 0 {
		reason = string(choice.Reasons[0].Code)
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		"cluster": structpb.NewStringValue(string(choice.Cluster)),
		"region":  structpb.NewStringValue(string(choice.Region)),
		"reason":  structpb.NewStringValue(reason),
	}}
}

// hopAddress is a member cluster's inner hop. Envoy takes one address for one host whatever its priority, so that the
// same hop again needs an address that differs.
func hopAddress(member policies.ClusterName, again bool) *core.Address {
	internal := &core.EnvoyInternalAddress{AddressNameSpecifier: &core.EnvoyInternalAddress_ServerListenerName{ServerListenerName: xds.HopListener(member)}}
	if again {
		internal.EndpointId = "again"
	}
	return &core.Address{Address: &core.Address_EnvoyInternalAddress{EnvoyInternalAddress: internal}}
}

func lbEndpoint(address *core.Address, healthy bool) *endpoint.LbEndpoint {
	out := &endpoint.LbEndpoint{HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{Address: address}}}
	if !healthy {
		out.HealthStatus = core.HealthStatus_UNHEALTHY
	}
	return out
}

func transportSocket(name string, config *anypb.Any) *core.TransportSocket {
	return &core.TransportSocket{Name: name, ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: config}}
}
