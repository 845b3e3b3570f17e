package xds

import (
	"testing"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The entries that are put together by hand are those that the protocol's own messages serialise to.
func TestEntriesAreTheProtocolsOwn(t *testing.T) {
	for name, options := range map[string][]Option{
		"plain":                nil,
		"aliases":              {WithAliases("b", "c")},
		"lifetime":             {WithTTL(1500 * time.Millisecond)},
		"lifetime and aliases": {WithTTL(time.Hour), WithAliases("b")},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := NewResource(TypeCluster, "a", &cluster.Cluster{Name: "a", AltStatName: "1"}, options...)
			if err != nil {
				t.Fatal(err)
			}
			message := &anypb.Any{TypeUrl: string(TypeCluster), Value: r.Bytes}
			full := &discovery.Resource{Name: "a", Version: r.Version, Aliases: r.Aliases, Resource: message}
			if r.TTL > 0 {
				full.Ttl = durationpb.New(r.TTL)
			}
			heartbeat := proto.CloneOf(full)
			heartbeat.Resource = nil
			for what, c := range map[string]struct {
				entry []byte
				want  proto.Message
			}{
				"delta":           {r.DeltaEntry(), &discovery.DeltaDiscoveryResponse{Resources: []*discovery.Resource{full}}},
				"delta heartbeat": {r.DeltaHeartbeat(), &discovery.DeltaDiscoveryResponse{Resources: []*discovery.Resource{heartbeat}}},
				"state":           {r.StateEntry(), &discovery.DiscoveryResponse{Resources: []*anypb.Any{message}}},
				"wrapped":         {r.WrappedEntry(), &discovery.DiscoveryResponse{Resources: []*anypb.Any{wrapAny(t, full)}}},
				"state heartbeat": {r.StateHeartbeat(), &discovery.DiscoveryResponse{Resources: []*anypb.Any{wrapAny(t, heartbeat)}}},
			} {
				got := c.want.ProtoReflect().New().Interface()
				if err := proto.Unmarshal(c.entry, got); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if diff := cmp.Diff(c.want, got, protocmp.Transform(), unpacked); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

// unpacked compares packed messages by what they say: the order of fields on the wire is free.
var unpacked = protocmp.FilterMessage(&anypb.Any{}, cmp.Comparer(func(a, b protocmp.Message) bool {
	return cmp.Equal(unpack(a), unpack(b), protocmp.Transform())
}))

func unpack(m protocmp.Message) any {
	if inner, ok := m["value"].(protocmp.Message); ok {
		return inner
	}
	return m
}

func wrapAny(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
