package verify

import (
	"cmp"
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
	words map[met]mark  // memory of markOf
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
	a := &atlas{at: map[netip.AddrPort][]occupant{}, pools: w.Pools(), words: map[met]mark{}}
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

// put notes an occupant. Those of one address are in an order that does not tell when they came.
func (a *atlas) put(at netip.AddrPort, o occupant) {
	if o.region == nil {
		return
	}
	place, _ := slices.BinarySearchFunc(a.at[at], o, func(x, y occupant) int {
		return cmp.Or(cmp.Compare(x.service, y.service), cmp.Compare(x.cluster, y.cluster))
	})
	a.at[at] = slices.Insert(a.at[at], place, o)
}

func regionOf(set *policies.Set, cluster policies.ClusterName) *policies.Region {
	c, ok := set.Cluster(cluster)
	if !ok {
		return nil
	}
	region, _ := set.Region(c.Spec.Region)
	return region
}

// revise moves the atlas on to a world of the same policies, and gives the addresses at which something else is now, each at
// least once. It costs what pools have other addresses.
func (a *atlas) revise(w *world.World) []netip.AddrPort {
	var changed []netip.AddrPort
	for i, now := range w.Pools() {
		before := a.pools[i] // the same policies name the same pools
		if now == before || sameAddresses(before, now) {
			continue
		}
		o := occupant{cluster: now.Key.Cluster, region: regionOf(w.Policies(), now.Key.Cluster), service: now.Key.Service}
		for _, e := range before.Endpoints {
			if !has(now, e.Address) {
				a.drop(e.Address, o)
				changed = append(changed, e.Address)
			}
		}
		for _, e := range now.Endpoints {
			if !has(before, e.Address) {
				a.put(e.Address, o)
				changed = append(changed, e.Address)
			}
		}
	}
	a.pools = w.Pools()
	return changed
}

func sameAddresses(a, b *world.Pool) bool {
	return slices.EqualFunc(a.Endpoints, b.Endpoints, func(x, y world.Endpoint) bool { return x.Address == y.Address })
}

func has(p *world.Pool, address netip.AddrPort) bool {
	_, ok := slices.BinarySearchFunc(p.Endpoints, address, func(e world.Endpoint, a netip.AddrPort) int { return e.Address.Compare(a) })
	return ok
}

func (a *atlas) drop(at netip.AddrPort, o occupant) {
	left := slices.DeleteFunc(a.at[at], func(x occupant) bool { return x == o })
	if len(left) == 0 {
		delete(a.at, at)
		return
	}
	a.at[at] = left
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
