package cache

import (
	"fmt"
	"net/netip"

	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// PoolsIn reads back which endpoints the pools had in a snapshot, as far as it has them.
func PoolsIn(s *xds.Snapshot) (map[world.PoolKey][]world.FoundEndpoint, error) {
	pools := map[world.PoolKey][]world.FoundEndpoint{}
	for r := range s.Of(xds.TypeEndpoint).All() {
		key, ok := xds.ParsePoolCluster(r.Name)
		if !ok {
			continue
		}
		var m endpoint.ClusterLoadAssignment
		if err := proto.Unmarshal(r.Bytes, &m); err != nil {
			return nil, fmt.Errorf("read back %s: %w", r.Name, err)
		}
		for _, l := range m.GetEndpoints() {
			for _, e := range l.GetLbEndpoints() {
				at := e.GetEndpoint().GetAddress().GetSocketAddress()
				address, err := netip.ParseAddr(at.GetAddress())
				if err != nil {
					return nil, fmt.Errorf("read back %s: %w", r.Name, err)
				}
				pools[key] = append(pools[key], world.FoundEndpoint{Address: netip.AddrPortFrom(address, uint16(at.GetPortValue()))})
			}
		}
	}
	return pools, nil
}
