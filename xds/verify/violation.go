package verify

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Code says what kind of violation it is. The list is closed.
type Code string

// The codes of violations.
const (
	// OutsideBoundary: a request can reach an address outside a boundary that binds it.
	OutsideBoundary Code = "outside_boundary"
	// LocationUnknown: a request from an unknown location is let in though a rule refuses it.
	LocationUnknown Code = "location_unknown"
	// UnknownAddress: an address is in no pool and is no gateway of any cluster, so nobody knows where it is.
	UnknownAddress Code = "unknown_address"
	// WrongClass: a request is passed on under another residency class than the rules give it.
	WrongClass Code = "wrong_class"
	// ForeignTenant: requests of a tenant that the proxies may not serve are passed on.
	ForeignTenant Code = "foreign_tenant"
	// WrongService: a request for one service can reach servers of another only.
	WrongService Code = "wrong_service"
	// WrongLocation: a client is not located as the Gateway policy says: by another database or service, or by
	// trusting more or fewer proxies in front.
	WrongLocation Code = "wrong_location"
	// CrossesTwice: a request from another cluster's gateway can leave this cluster again.
	CrossesTwice Code = "crosses_twice"
	// Loop: clusters and internal listeners lead back to themselves.
	Loop Code = "loop"
	// ForgedHeaders: headers that only Meridian may set are not stripped before anything reads them.
	ForgedHeaders Code = "forged_headers"
	// StaleRoute: Envoy may have chosen the route before the headers that decide were set.
	StaleRoute Code = "stale_route"
	// PeerNotAuthenticated: a gateway of another cluster is talked with, in either direction, without both sides proving
	// by certificate which cluster they are of.
	PeerNotAuthenticated Code = "peer_not_authenticated"
	// PanicEnabled: Envoy would use unhealthy hosts, and so other priorities, on its own judgement.
	PanicEnabled Code = "panic_enabled"
	// NotAnalysable: the configuration holds something that can't be followed.
	NotAnalysable Code = "not_analysable"
	// Dangling: a resource names another that is not there.
	Dangling Code = "dangling"
	// PriorityGap: priorities are not contiguous from 0.
	PriorityGap Code = "priority_gap"
	// Invalid: a resource breaks the rules of its own type.
	Invalid Code = "invalid"
	// AddressInUse: two listeners would bind one address.
	AddressInUse Code = "address_in_use"
)

// Violation is one reason why a snapshot must not be published.
type Violation struct {
	Code      Code              `json:"code"`
	Viewpoint world.ViewpointID `json:"viewpoint"`
	// Resource is where it was found: the listener, route configuration, cluster, assignment or secret.
	Resource string `json:"resource,omitempty"`
	// Route names the route that leads there, Cluster the Envoy cluster.
	Route   string `json:"route,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	// Address is one that can be reached, in Region.
	Address netip.AddrPort      `json:"address,omitzero"`
	Region  policies.RegionName `json:"region,omitempty"`
	// Policies are the rules that it breaks, sorted.
	Policies []policies.ResidencyName `json:"policies,omitempty"`
	// Detail says more, such as the request that gets there.
	Detail string `json:"detail,omitempty"`
}

// String tells an operator which route, which address and which policy, and what happens now.
func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.Viewpoint, v.Code)
	for _, part := range []struct{ name, value string }{{"resource", v.Resource}, {"route", v.Route}, {"cluster", v.Cluster}} {
		if part.value != "" {
			fmt.Fprintf(&b, ", %s %s", part.name, part.value)
		}
	}
	if v.Address.IsValid() {
		fmt.Fprintf(&b, ", address %s", v.Address)
	}
	if v.Region != "" {
		fmt.Fprintf(&b, " in region %s", v.Region)
	}
	if len(v.Policies) > 0 {
		fmt.Fprintf(&b, ", against policy %s", joinNames(v.Policies))
	}
	if v.Detail != "" {
		b.WriteString(" (" + v.Detail + ")")
	}
	b.WriteString("; not published, proxies keep the last good configuration")
	return b.String()
}

func (v Violation) compare(o Violation) int {
	return cmp.Or(strings.Compare(string(v.Code), string(o.Code)), strings.Compare(v.Resource, o.Resource), strings.Compare(v.Route, o.Route),
		strings.Compare(v.Cluster, o.Cluster), v.Address.Compare(o.Address), strings.Compare(joinNames(v.Policies), joinNames(o.Policies)),
		strings.Compare(v.Detail, o.Detail))
}

func joinNames(names []policies.ResidencyName) string {
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = string(n)
	}
	return strings.Join(parts, ", ")
}
