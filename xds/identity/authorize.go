package identity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Authorize says whether an identity may have a viewpoint of a cluster: nil, or why not. It is pure.
func Authorize(cluster *policies.Cluster, who Identity, claimed world.Viewpoint) error {
	if reason := refusal(cluster, who, claimed); reason != "" {
		return fmt.Errorf("the node claims %s and proves to be %s: %s", claimed.ID(), who.Name(), reason)
	}
	return nil
}

// refusal is empty where there is none.
func refusal(cluster *policies.Cluster, who Identity, claimed world.Viewpoint) string {
	name, spec := cluster.Metadata.Name, &cluster.Spec
	switch {
	case claimed.Cluster != name || claimed.Region != spec.Region:
		return fmt.Sprintf("cluster %s is in region %s", name, spec.Region)
	case !who.SPIFFE.IsZero() && who.SPIFFE.TrustDomain().Name() != spec.TrustDomain:
		return fmt.Sprintf("the trust domain of cluster %s is %s", name, spec.TrustDomain)
	case who.SPIFFE.IsZero() && who.Account.Cluster != name:
		return fmt.Sprintf("nothing that cluster %s vouches for", name)
	case len(spec.Proxies) > 0:
		return bound(spec.Proxies, who, claimed)
	case who.SPIFFE.IsZero():
		return fmt.Sprintf("Cluster %s names no service accounts in spec.proxies", name)
	}
	return ""
}

// bound looks for one binding that permits all of the claim, and names the first thing that none does.
func bound(bindings []policies.ProxyBinding, who Identity, claimed world.Viewpoint) string {
	named := slices.DeleteFunc(slices.Clone(bindings), func(b policies.ProxyBinding) bool { return !names(b, who) })
	if len(named) == 0 {
		return fmt.Sprintf("spec.proxies of Cluster %s does not name it", claimed.Cluster)
	}
	inRole := slices.DeleteFunc(named, func(b policies.ProxyBinding) bool { return b.Role != claimed.Role })
	if len(inRole) == 0 {
		return fmt.Sprintf("spec.proxies of Cluster %s does not name it for role %s", claimed.Cluster, claimed.Role)
	}
	if !slices.ContainsFunc(inRole, func(b policies.ProxyBinding) bool { return permits(b.Tenants, claimed.Tenants) }) {
		return fmt.Sprintf("spec.proxies of Cluster %s names it for some tenants only, and other ones, or all, are claimed", claimed.Cluster)
	}
	return ""
}

// names says whether a binding is for an identity.
func names(b policies.ProxyBinding, who Identity) bool {
	if !who.SPIFFE.IsZero() {
		return slices.ContainsFunc(b.SPIFFEIDs, func(pattern string) bool { return matches(pattern, who.SPIFFE.String()) })
	}
	return slices.Contains(b.ServiceAccounts, who.Account.Namespace+"/"+who.Account.ServiceAccount)
}

// matches says whether an ID is the one named or, where the pattern ends in /*, one below it.
func matches(pattern, id string) bool {
	above, wild := strings.CutSuffix(pattern, "*")
	if !wild {
		return pattern == id
	}
	return strings.HasSuffix(above, "/") && strings.HasPrefix(id, above) && len(id) > len(above)
}

// permits says whether all tenants claimed are among those bound; none bound permit any.
func permits(bound []policies.Tenant, claimed world.Tenants) bool {
	if len(bound) == 0 {
		return true
	}
	return claimed != world.AllTenants && !slices.ContainsFunc(claimed.List(), func(t policies.Tenant) bool { return !slices.Contains(bound, t) })
}
