package verify

import (
	"net/netip"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// atlas knows what is at every address that the world holds.
type atlas struct {
	at    map[netip.AddrPort][]occupant
	pools []*world.Pool // what it was drawn from
}

// occupant is what is at an address: a server of a service's pool, or a gateway of a cluster.
type occupant struct {
	cluster policies.ClusterName
	region  *policies.Region
	service policies.ServiceName
	gateway bool
}

func drawAtlas(w *world.World) *atlas {
	set := w.Policies()
	a := &atlas{at: map[netip.AddrPort][]occupant{}, pools: w.Pools()}
	for i := range set.Clusters {
		c := &set.Clusters[i]
		for _, address := range c.Spec.Gateways {
			a.put(address.AddrPort(), occupant{cluster: c.Metadata.Name, region: regionOf(set, c.Metadata.Name), gateway: true})
		}
	}
	for _, p := range w.Pools() {
		region := regionOf(set, p.Key.Cluster)
		for _, e := range p.Endpoints {
			a.put(e.Address, occupant{cluster: p.Key.Cluster, region: region, service: p.Key.Service})
		}
	}
	return a
}

func (a *atlas) put(at netip.AddrPort, o occupant) {
	if o.region != nil {
		a.at[at] = append(a.at[at], o)
	}
}

func regionOf(set *policies.Set, cluster policies.ClusterName) *policies.Region {
	c, ok := set.Cluster(cluster)
	if !ok {
		return nil
	}
	region, _ := set.Region(c.Spec.Region)
	return region
}

// current says whether a world of the same policies has the same addresses.
func (a *atlas) current(w *world.World) bool {
	return slices.EqualFunc(a.pools, w.Pools(), func(x, y *world.Pool) bool {
		return x == y || x.Key == y.Key && slices.EqualFunc(x.Endpoints, y.Endpoints, func(x, y world.Endpoint) bool { return x.Address == y.Address })
	})
}

// find is what a request for a service can meet at an address. Services share servers, so the one that was asked for
// counts; a gateway leads to any service of its cluster.
func (a *atlas) find(at netip.AddrPort, service policies.ServiceName) []occupant {
	all := a.at[at]
	if len(all) < 2 {
		return all
	}
	fitting := slices.DeleteFunc(slices.Clone(all), func(o occupant) bool { return !o.gateway && o.service != service })
	if len(fitting) == 0 {
		return all
	}
	return fitting
}

// socket reads an IP address and port; ok is false for anything else.
func socket(a *core.Address) (netip.AddrPort, bool) {
	s := a.GetSocketAddress()
	if s == nil {
		return netip.AddrPort{}, false
	}
	ip, err := netip.ParseAddr(s.GetAddress())
	if err != nil || s.GetPortValue() == 0 || s.GetPortValue() > 65535 {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ip, uint16(s.GetPortValue())), true
}
