package cache_test

import (
	"net/netip"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
)

func assignment(t *testing.T, name, address string, port uint32) *xds.Resource {
	t.Helper()
	at := &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{Address: address, PortSpecifier: &core.SocketAddress_PortValue{PortValue: port}}}}
	r, err := xds.NewResource(xds.TypeEndpoint, name, &endpoint.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpoint.LocalityLbEndpoints{{
		LbEndpoints: []*endpoint.LbEndpoint{{HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{Address: at}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPoolsAreReadBack(t *testing.T) {
	pool := world.PoolKey{Service: "llama", Cluster: "fra-1"}
	s := xds.NewSnapshot("gateway/r/c", []*xds.Resource{
		assignment(t, xds.PoolCluster(pool), "10.0.0.1", 8000),
		assignment(t, xds.GatewayCluster("iad-1"), "127.0.0.1", 8443),
	})
	got, err := cache.PoolsIn(s)
	if err != nil {
		t.Fatal(err)
	}
	want := map[world.PoolKey][]world.FoundEndpoint{pool: {{Address: netip.MustParseAddrPort("10.0.0.1:8000")}}}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	broken := xds.NewSnapshot("gateway/r/c", []*xds.Resource{assignment(t, xds.PoolCluster(pool), "no-address", 1)})
	if _, err := cache.PoolsIn(broken); err == nil {
		t.Error("an address that is none was read back")
	}
}
