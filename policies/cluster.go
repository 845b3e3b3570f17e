package policies

import "net/netip"

// Cluster is one Kubernetes cluster, or one list of bare endpoints, in one Region. Only this object decides where a
// cluster is: nothing that a cluster says of itself can move it into another jurisdiction.
type Cluster struct {
	Metadata Metadata[ClusterName] `json:"metadata"`
	Spec     ClusterSpec           `json:"spec"`
	Origin   Origin                `json:"-"`
}

// ClusterSpec says where a cluster is and how other clusters' gateways reach it.
type ClusterSpec struct {
	// Region is the region that the cluster is in.
	Region RegionName `json:"region"`
	// Gateways are the east-west addresses at which other clusters' gateways reach this one, over mTLS. Without
	// any, its endpoints are dialled directly: a flat network.
	Gateways []Address `json:"gateways,omitempty" jsonschema:"uniqueItems=true"`
	// TrustDomain is the SPIFFE trust domain of the cluster's proxies. Default: the cluster's name + ".meridian".
	TrustDomain string `json:"trustDomain,omitempty" jsonschema:"pattern=^[a-z0-9._-]+$,maxLength=255"`
	// Kubernetes says how the cluster's API server is reached, from which pools are read. Default: it is not.
	Kubernetes *Kubernetes `json:"kubernetes,omitempty"`
	// Drain empties the cluster: it serves only what no other permitted cluster can.
	Drain bool `json:"drain,omitempty"`
	// DrainOver is how long emptying it takes: its share of requests shrinks evenly over that time. Default 0s: new requests go
	// elsewhere at once.
	DrainOver Duration `json:"drainOver,omitempty"`
	// Proxies says who may get configuration as a proxy of this cluster, where the xDS port asks for identities.
	// Default: whoever is in the trust domain, as any proxy; a service account never.
	Proxies []ProxyBinding `json:"proxies,omitempty"`
}

// ProxyBinding permits identities to be proxies of one role. A proxy needs one binding that permits all that it claims.
type ProxyBinding struct {
	// Role is what they may be.
	Role Role `json:"role"`
	// SPIFFEIDs are ids in the cluster's trust domain, spiffe://TRUST-DOMAIN/PATH; with /* at the end, all ids below.
	SPIFFEIDs []string `json:"spiffeIDs,omitempty" jsonschema:"uniqueItems=true"`
	// ServiceAccounts are those of the Kubernetes cluster, NAMESPACE/NAME.
	ServiceAccounts []string `json:"serviceAccounts,omitempty" jsonschema:"uniqueItems=true"`
	// Tenants are those whose requests these proxies may serve. A proxy must then claim some of them, and none else.
	// Default: any, or all.
	Tenants []Tenant `json:"tenants,omitempty" jsonschema:"uniqueItems=true"`
}

// Address is an IP address and a port.
type Address struct {
	// Address is an IPv4 or IPv6 address; names are not resolved.
	Address netip.Addr `json:"address"`
	// Port is 1 to 65535.
	Port uint16 `json:"port"`
}

// AddrPort is the address in the standard library's type.
func (a Address) AddrPort() netip.AddrPort { return netip.AddrPortFrom(a.Address, a.Port) }

// String is "address:port", with an IPv6 address in brackets.
func (a Address) String() string { return a.AddrPort().String() }
