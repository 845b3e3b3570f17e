package policies

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"
)

// WithRetiring is the set with clusters of an older one that it names no more, to be drained, and with what those need: their pools of
// services that the set still has, their regions, and the gateways of their proxies. keep says which of them. A cluster of which
// anything stands elsewhere in the set, by address or by how its API server is reached, has only got another name or place: it is
// not kept. Where none is, it is the set itself.
func (s *Set) WithRetiring(before *Set, keep func(ClusterName) bool) *Set {
	next := *s
	next.Regions, next.Clusters, next.Gateways = slices.Clone(s.Regions), slices.Clone(s.Clusters), slices.Clone(s.Gateways)
	next.Services = slices.Clone(s.Services)
	kept := false
	for i := range before.Clusters {
		c := &before.Clusters[i]
		if _, named := s.Cluster(c.Metadata.Name); named || !keep(c.Metadata.Name) || s.has(before, c) {
			continue
		}
		kept = true
		next.retire(before, *c)
	}
	if !kept {
		return s
	}
	next.Hash = hashOf(&next)
	return &next
}

// retire adds a cluster of an older set. The slices of s are its own.
func (s *Set) retire(before *Set, c Cluster) {
	c.Spec.Drain = true
	s.Clusters = insert(s.Clusters, c, func(c *Cluster) ClusterName { return c.Metadata.Name })
	if r, ok := before.Region(c.Spec.Region); ok {
		if _, named := s.Region(r.Metadata.Name); !named {
			s.Regions = insert(s.Regions, *r, func(r *Region) RegionName { return r.Metadata.Name })
		}
	}
	for i := range s.Services {
		service := &s.Services[i]
		if old, ok := before.Service(service.Metadata.Name); ok {
			service.Spec.Pools = append(slices.Clip(service.Spec.Pools), poolsIn(old, c.Metadata.Name)...)
		}
	}
	for _, role := range []Role{RoleGateway, RoleSidecar} {
		g, ok := before.GatewayFor(role, c.Spec.Region, c.Metadata.Name)
		if _, served := s.GatewayFor(role, c.Spec.Region, c.Metadata.Name); !ok || served {
			continue
		}
		its := *g
		its.Spec.Proxies = ProxySelector{Roles: []Role{role}, Clusters: []ClusterName{c.Metadata.Name}}
		if s.hasGateway(its.Metadata.Name) {
			its.Metadata.Name = GatewayName(string(g.Metadata.Name) + "-" + string(c.Metadata.Name) + "-" + string(role))
		}
		if !s.hasGateway(its.Metadata.Name) {
			s.Gateways = insert(s.Gateways, its, func(g *Gateway) GatewayName { return g.Metadata.Name })
		}
	}
}

func (s *Set) hasGateway(name GatewayName) bool {
	_, ok := find(s.Gateways, name, func(g *Gateway) GatewayName { return g.Metadata.Name })
	return ok
}

// poolsIn are a service's pools in a cluster: one at most.
func poolsIn(s *Service, c ClusterName) (pools []Pool) {
	for _, p := range s.Spec.Pools {
		if p.Cluster == c {
			pools = append(pools, p)
		}
	}
	return pools
}

// insert puts an object where its name belongs.
func insert[T any, N cmp.Ordered](sorted []T, object T, nameOf func(*T) N) []T {
	i, _ := slices.BinarySearchFunc(sorted, nameOf(&object), func(t T, name N) int { return cmp.Compare(nameOf(&t), name) })
	return slices.Insert(sorted, i, object)
}

// has says whether anything of an older set's cluster stands in s: an endpoint, a gateway, or its API server.
func (s *Set) has(before *Set, c *Cluster) bool {
	its, all := before.addressesOf(c), map[netip.AddrPort]bool{}
	for i := range s.Clusters {
		other := &s.Clusters[i]
		if k := c.Spec.Kubernetes; k != nil && other.Spec.Kubernetes != nil && k.sameServer(other.Spec.Kubernetes) {
			return true
		}
		for _, a := range s.addressesOf(other) {
			all[a] = true
		}
	}
	return slices.ContainsFunc(its, func(a netip.AddrPort) bool { return all[a] })
}

// addressesOf are those of a cluster's gateways and of its endpoints, as far as they are listed.
func (s *Set) addressesOf(c *Cluster) (all []netip.AddrPort) {
	for _, g := range c.Spec.Gateways {
		all = append(all, g.AddrPort())
	}
	for i := range s.Services {
		for _, p := range poolsIn(&s.Services[i], c.Metadata.Name) {
			for _, e := range p.Endpoints {
				all = append(all, e.AddrPort())
			}
		}
	}
	return all
}

// sameServer says whether two kubeconfigs lead to one API server, as far as that can be told without reading them.
func (k *Kubernetes) sameServer(other *Kubernetes) bool {
	return k.Kubeconfig == other.Kubeconfig && k.Context == other.Context && k.InCluster == other.InCluster && reflect.DeepEqual(k.Secret, other.Secret)
}
