package serve

import (
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/meridian-mesh/meridian/xds"
)

// deltaCodec is the incremental protocol.
type deltaCodec struct {
	stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer
}

func (c deltaCodec) receive() (incoming, error) {
	m, err := c.stream.Recv()
	if err != nil {
		return incoming{}, err
	}
	r := request{
		typ: xds.Type(m.GetTypeUrl()), nonce: m.GetResponseNonce(), held: m.GetInitialResourceVersions(),
		subscribe: m.GetResourceNamesSubscribe(), unsubscribe: m.GetResourceNamesUnsubscribe(),
	}
	if d := m.GetErrorDetail(); d != nil {
		r.refusal = refusalOf(d.GetMessage())
	}
	return incoming{node: m.GetNode(), request: r}, nil
}

func (c deltaCodec) send(r response) (int, error) {
	m := &discovery.DeltaDiscoveryResponse{
		TypeUrl: string(r.typ), Nonce: r.nonce, SystemVersionInfo: r.version, RemovedResources: r.removed,
		Resources: make([]*discovery.Resource, len(r.resources)),
	}
	size := 0
	for i, res := range r.resources {
		m.Resources[i] = &discovery.Resource{Name: res.Name, Version: res.Version, Resource: &anypb.Any{TypeUrl: string(res.Type), Value: res.Bytes}}
		size += len(res.Bytes)
	}
	return size, c.stream.Send(m)
}
