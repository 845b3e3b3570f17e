package world

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/meridian-mesh/meridian/policies"
)

// PoolKey names the endpoints of one service in one cluster.
type PoolKey struct {
	Service policies.ServiceName
	Cluster policies.ClusterName
}

// Compare orders keys by service, then cluster.
func (k PoolKey) Compare(o PoolKey) int {
	return cmp.Or(strings.Compare(string(k.Service), string(o.Service)), strings.Compare(string(k.Cluster), string(o.Cluster)))
}

// String is "service@cluster".
func (k PoolKey) String() string { return string(k.Service) + "@" + string(k.Cluster) }

// EndpointKey names one server of a pool.
type EndpointKey struct {
	Pool    PoolKey
	Address netip.AddrPort
}

// Compare orders keys by pool, then address.
func (k EndpointKey) Compare(o EndpointKey) int {
	return cmp.Or(k.Pool.Compare(o.Pool), k.Address.Compare(o.Address))
}

// String is "service@cluster address".
func (k EndpointKey) String() string { return k.Pool.String() + " " + k.Address.String() }

// ClassID names a residency class: "any" for requests that nothing binds, else the names of the rules that bind,
// sorted and joined by "+".
type ClassID string

// AnyClass is the class of requests that nothing binds.
const AnyClass ClassID = "any"

// ClassOf names the class that these rules make together. rules must be sorted.
func ClassOf(rules []policies.ResidencyName) ClassID {
	if len(rules) == 0 {
		return AnyClass
	}
	parts := make([]string, len(rules))
	for i, r := range rules {
		parts[i] = string(r)
	}
	return ClassID(strings.Join(parts, "+"))
}

// Rules are the names of the rules that make the class; none for AnyClass.
func (c ClassID) Rules() []policies.ResidencyName {
	if c == AnyClass || c == "" {
		return nil
	}
	parts := strings.Split(string(c), "+")
	rules := make([]policies.ResidencyName, len(parts))
	for i, p := range parts {
		rules[i] = policies.ResidencyName(p)
	}
	return rules
}

// Pinned says whether any rule binds the class.
func (c ClassID) Pinned() bool { return c != AnyClass && c != "" }

// DemandKey names the requests of one class for one service that enter at one viewpoint.
type DemandKey struct {
	Viewpoint ViewpointID
	Service   policies.ServiceName
	Class     ClassID
}

// Compare orders keys by service, then class, then viewpoint.
func (k DemandKey) Compare(o DemandKey) int {
	return cmp.Or(strings.Compare(string(k.Service), string(o.Service)),
		strings.Compare(string(k.Class), string(o.Class)), strings.Compare(string(k.Viewpoint), string(o.Viewpoint)))
}
