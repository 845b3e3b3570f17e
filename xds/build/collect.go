package build

import (
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/meridian-mesh/meridian/xds"
)

// collector gathers resources and the first error, so that builders read as the configuration they build.
type collector struct {
	resources []*xds.Resource
	err       error
}

// add serialises a message and keeps it.
func (c *collector) add(t xds.Type, name string, m proto.Message) {
	r, err := xds.NewResource(t, name, m)
	if err != nil {
		c.fail(err)
		return
	}
	c.keep(r)
}

func (c *collector) keep(r *xds.Resource) { c.resources = append(c.resources, r) }

func (c *collector) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// any packs a message deterministically.
func (c *collector) any(m proto.Message) *anypb.Any {
	a := &anypb.Any{}
	if err := anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		c.fail(err)
	}
	return a
}

func extension(name string, config *anypb.Any) *core.TypedExtensionConfig {
	return &core.TypedExtensionConfig{Name: name, TypedConfig: config}
}

func duration(d time.Duration) *durationpb.Duration { return durationpb.New(d) }

func uint32Value(v uint32) *wrapperspb.UInt32Value { return wrapperspb.UInt32(v) }

func boolValue(v bool) *wrapperspb.BoolValue { return wrapperspb.Bool(v) }

// overADS says that a resource comes over the same stream as everything else.
func overADS() *core.ConfigSource {
	return &core.ConfigSource{ResourceApiVersion: core.ApiVersion_V3, ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}}}
}

func socketAddress(address string, port uint16) *core.Address {
	return &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
		Address: address, PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(port)},
	}}}
}

// setHeader overwrites a header.
func setHeader(key, value string) *core.HeaderValueOption {
	return &core.HeaderValueOption{Header: &core.HeaderValue{Key: key, Value: value}, AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD}
}
