package identity

import (
	"net/netip"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/meridian-mesh/meridian/policies"
)

// Identity is what a peer has proved to be: one of SPIFFE and Account, or nothing but an Address over plaintext.
type Identity struct {
	// SPIFFE is the ID in its client certificate.
	SPIFFE spiffeid.ID
	// Account is the service account of its token.
	Account Account
	// Address is where its connection comes from.
	Address netip.Addr
}

// Account is a service account that a Kubernetes cluster's API server vouches for.
type Account struct {
	// Cluster is whose API server does.
	Cluster policies.ClusterName
	// Namespace and ServiceAccount name it.
	Namespace, ServiceAccount string
	// Pod is the pod that the token is bound to; empty where it is bound to none.
	Pod string
}

// String is "cluster:namespace/name", and "/pod" where the token is bound to one.
func (a Account) String() string {
	s := string(a.Cluster) + ":" + a.Namespace + "/" + a.ServiceAccount
	if a.Pod != "" {
		s += "/" + a.Pod
	}
	return s
}

// Name is short and stable text by which a peer's share of anything can be counted: its SPIFFE ID or account, which
// several proxies may have in common, or over plaintext its IP address.
func (i Identity) Name() string {
	switch {
	case !i.SPIFFE.IsZero():
		return i.SPIFFE.String()
	case i.Account != Account{}:
		return i.Account.String()
	case i.Address.IsValid():
		return i.Address.String()
	}
	return "unknown"
}
