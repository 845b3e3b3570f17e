package serve

import (
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/meridian-mesh/meridian/xds"
)

// sotwCodec is the state-of-the-world protocol.
type sotwCodec struct {
	stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer
}

func (c sotwCodec) receive() (incoming, error) {
	m, err := c.stream.Recv()
	if err != nil {
		return incoming{}, err
	}
	r := request{typ: xds.Type(m.GetTypeUrl()), nonce: m.GetResponseNonce(), names: m.GetResourceNames(), version: m.GetVersionInfo()}
	if d := m.GetErrorDetail(); d != nil {
		r.refusal = refusalOf(d.GetMessage())
	}
	return incoming{node: m.GetNode(), request: r}, nil
}

func (c sotwCodec) send(r response) (int, error) {
	m := &discovery.DiscoveryResponse{TypeUrl: string(r.typ), Nonce: r.nonce, VersionInfo: r.version, Resources: make([]*anypb.Any, len(r.resources))}
	size := 0
	for i, res := range r.resources {
		m.Resources[i] = &anypb.Any{TypeUrl: string(res.Type), Value: res.Bytes}
		size += len(res.Bytes)
	}
	return size, c.stream.Send(m)
}
