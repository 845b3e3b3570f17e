package verify

import (
	"net/netip"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/meridian-mesh/meridian/policies"
)

// place is where an address is: a server of a pool, or a gateway of a cluster.
type place struct {
	address netip.AddrPort
	cluster policies.ClusterName
	region  *policies.Region
	// service is whose server it is; for a gateway, whose it leads to.
	service policies.ServiceName
	gateway bool
	// via are the Envoy clusters that led here, for people.
	via string
}

// placesOf knows every address that policies name.
func placesOf(set *policies.Set) map[string]place {
	places := map[string]place{}
	region := func(c policies.ClusterName) *policies.Region {
		cl, ok := set.Cluster(c)
		if !ok {
			return nil
		}
		r, _ := set.Region(cl.Spec.Region)
		return r
	}
	for _, c := range set.Clusters {
		for _, a := range c.Spec.Gateways {
			places[a.AddrPort().String()] = place{address: a.AddrPort(), cluster: c.Metadata.Name, region: region(c.Metadata.Name), gateway: true}
		}
	}
	for _, s := range set.Services {
		for _, p := range s.Spec.Pools {
			for _, a := range p.Endpoints {
				places[poolAddress(s.Metadata.Name, a.AddrPort())] = place{address: a.AddrPort(), cluster: p.Cluster, region: region(p.Cluster), service: s.Metadata.Name}
				// Whatever service shares the address, the place is the same: an address is in one cluster.
				if _, ok := places[a.AddrPort().String()]; !ok {
					places[a.AddrPort().String()] = place{address: a.AddrPort(), cluster: p.Cluster, region: region(p.Cluster), service: s.Metadata.Name}
				}
			}
		}
	}
	return places
}

func poolAddress(s policies.ServiceName, a netip.AddrPort) string {
	return string(s) + " " + a.String()
}

// locate asks where an address is. A service shares servers with others, so the one that was asked for counts.
func (k *walk) locate(a netip.AddrPort, service policies.ServiceName) (place, bool) {
	if p, ok := k.places[poolAddress(service, a)]; ok {
		return p, true
	}
	p, ok := k.places[a.String()]
	if ok && p.gateway {
		p.service = service
	}
	return p, ok && p.region != nil
}

// socket reads an IP address and port; ok is false for anything else.
func socket(a *core.Address) (netip.AddrPort, bool) {
	s := a.GetSocketAddress()
	if s == nil || s.GetResolverName() != "" {
		return netip.AddrPort{}, false
	}
	ip, err := netip.ParseAddr(s.GetAddress())
	if err != nil || s.GetPortValue() == 0 || s.GetPortValue() > 65535 {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ip, uint16(s.GetPortValue())), true
}
