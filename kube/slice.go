package kube

import (
	"cmp"
	"net/netip"
	"slices"
	"unique"

	discovery "k8s.io/api/discovery/v1"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// The labels of EndpointSlices that Multi-Cluster Services implementations keep (KEP-1645).
const (
	labelImport        = "multicluster.kubernetes.io/service-name"
	labelSourceCluster = "multicluster.kubernetes.io/source-cluster"
)

// object names an object in a member cluster whose endpoints are wanted.
type object struct {
	kind            policies.PoolSourceKind
	namespace, name string
}

func objectOf(s *policies.PoolSource) object { return object{s.Kind, s.Namespace, s.Name} }

// slice is what is kept of an EndpointSlice.
type slice struct {
	owner     object
	family    discovery.AddressType
	ports     []slicePort
	endpoints []sliceEndpoint
}

type slicePort struct {
	name   string
	number uint16
}

type sliceEndpoint struct {
	address   netip.Addr
	condition world.Condition
	zone      unique.Handle[string]
	pod       string // in the slice's namespace; empty where it is something else
}

// sliceOf keeps what counts of an EndpointSlice; ok is false where it can't hold endpoints of a pool in this cluster. A slice of
// another cluster's endpoints, which a ServiceImport has beside this one's own, never counts: a cluster must not say
// what lies in another, as it could be another jurisdiction.
func sliceOf(s *discovery.EndpointSlice, cluster policies.ClusterName) (kept slice, ok bool) {
	kept = slice{family: s.AddressType}
	if name := s.Labels[labelImport]; name != "" {
		if s.Labels[labelSourceCluster] != string(cluster) {
			return slice{}, false
		}
		kept.owner = object{policies.FromServiceImport, s.Namespace, name}
	} else if name := s.Labels[discovery.LabelServiceName]; name != "" {
		kept.owner = object{policies.FromService, s.Namespace, name}
	} else {
		return slice{}, false
	}
	for _, p := range s.Ports {
		if p.Port != nil && *p.Port > 0 && *p.Port <= 65535 {
			kept.ports = append(kept.ports, slicePort{valueOf(p.Name), uint16(*p.Port)})
		}
	}
	for i := range s.Endpoints {
		if e, ok := endpointOf(&s.Endpoints[i]); ok {
			kept.endpoints = append(kept.endpoints, e)
		}
	}
	return kept, true
}

// endpointOf reads an endpoint; ok is false where it has no IP address. Of several addresses of one endpoint the first counts, as
// the API says that they are interchangeable.
func endpointOf(e *discovery.Endpoint) (kept sliceEndpoint, ok bool) {
	if len(e.Addresses) == 0 {
		return sliceEndpoint{}, false
	}
	address, err := netip.ParseAddr(e.Addresses[0])
	if err != nil {
		return sliceEndpoint{}, false
	}
	return sliceEndpoint{address.Unmap(), conditionOf(e.Conditions), unique.Make(valueOf(e.Zone)), podBehind(e)}, true
}

// podBehind is the pod that an endpoint is of; empty where that is not said, or it is of something else.
func podBehind(e *discovery.Endpoint) string {
	if e.TargetRef == nil || e.TargetRef.Kind != "Pod" {
		return ""
	}
	return e.TargetRef.Name
}

// conditionOf reads an endpoint's conditions. A condition that is left out means what the API says of it: ready and serving are
// then true, terminating false. One that is terminating and serves no more is as good as gone.
func conditionOf(c discovery.EndpointConditions) world.Condition {
	serving := valueOr(c.Serving, valueOr(c.Ready, true))
	switch {
	case valueOr(c.Terminating, false) && serving:
		return world.Terminating
	case valueOr(c.Terminating, false) || !valueOr(c.Ready, true):
		return world.Unready
	}
	return world.Ready
}

// endpointsIn are the endpoints in some slices at the port of a name; with an empty name, at their only port. IPv4 counts where there
// is any of it, else IPv6: a dual-stack Service lists each server in both. An endpoint that stands in two slices, as it may
// while they are rearranged, counts once, in its best condition.
func endpointsIn(all []*slice, port string) []world.FoundEndpoint {
	family := discovery.AddressTypeIPv6
	if slices.ContainsFunc(all, func(s *slice) bool { return s.family == discovery.AddressTypeIPv4 && len(s.endpoints) > 0 }) {
		family = discovery.AddressTypeIPv4
	}
	var found []world.FoundEndpoint
	for _, s := range all {
		number, ok := s.port(port)
		if s.family != family || !ok {
			continue
		}
		for _, e := range s.endpoints {
			found = append(found, world.FoundEndpoint{Address: netip.AddrPortFrom(e.address, number), Condition: e.condition, Zone: e.zone.Value()})
		}
	}
	return distinct(found)
}

// distinct sorts endpoints by address and keeps each once, in its best condition.
func distinct(found []world.FoundEndpoint) []world.FoundEndpoint {
	rank := map[world.Condition]int{world.Ready: 0, world.Terminating: 1, world.Unready: 2, world.Unsaid: 3}
	slices.SortFunc(found, func(a, b world.FoundEndpoint) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(rank[a.Condition], rank[b.Condition]), cmp.Compare(a.Zone, b.Zone))
	})
	return slices.CompactFunc(found, func(a, b world.FoundEndpoint) bool { return a.Address == b.Address })
}

// port is the number of a named port. Without a name it is the slice's only port.
func (s *slice) port(name string) (number uint16, ok bool) {
	if name == "" {
		if len(s.ports) != 1 {
			return 0, false
		}
		return s.ports[0].number, true
	}
	i := slices.IndexFunc(s.ports, func(p slicePort) bool { return p.name == name })
	if i < 0 {
		return 0, false
	}
	return s.ports[i].number, true
}

func valueOf(s *string) string { return valueOr(s, "") }

// valueOr is what a pointer points to, or else a fallback.
func valueOr[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}
