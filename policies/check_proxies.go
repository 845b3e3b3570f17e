package policies

import (
	"fmt"
	"strings"
)

// maxSPIFFEID is the longest SPIFFE ID: https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE-ID.md, section 2.3.
const maxSPIFFEID = 2048

func (c check) proxies(spec *ClusterSpec) {
	for i, b := range spec.Proxies {
		c.proxyBinding(fmt.Sprintf("spec.proxies[%d]", i), spec.TrustDomain, b)
	}
}

func (c check) proxyBinding(field, trustDomain string, b ProxyBinding) {
	if b.Role == "" {
		c.complain(join(field, "role"), "is missing: gateway or sidecar")
	} else {
		c.oneOf(join(field, "role"), string(b.Role), string(RoleGateway), string(RoleSidecar))
	}
	if len(b.SPIFFEIDs)+len(b.ServiceAccounts) == 0 {
		c.complain(field, "permits nobody: give spiffeIDs or serviceAccounts")
	}
	for i, id := range b.SPIFFEIDs {
		c.spiffeID(fmt.Sprintf("%s.spiffeIDs[%d]", field, i), trustDomain, id)
	}
	for i, account := range b.ServiceAccounts {
		if namespace, name, _ := strings.Cut(account, "/"); !isLabel(namespace) || !isSubdomain(name) {
			c.complain(fmt.Sprintf("%s.serviceAccounts[%d]", field, i), "%q is not of the form namespace/name", clip(account))
		}
	}
	for i, t := range b.Tenants {
		c.headerValue(fmt.Sprintf("%s.tenants[%d]", field, i), string(t))
	}
	distinct(c, join(field, "spiffeIDs"), b.SPIFFEIDs)
	distinct(c, join(field, "serviceAccounts"), b.ServiceAccounts)
	distinct(c, join(field, "tenants"), b.Tenants)
}

// spiffeID complains about an id, or a pattern of ids, that no proxy of the cluster could have.
func (c check) spiffeID(field, trustDomain, id string) {
	rest, isSPIFFE := strings.CutPrefix(id, "spiffe://")
	domain, path, hasPath := strings.Cut(rest, "/")
	switch {
	case len(id) > maxSPIFFEID:
		c.complain(field, "has %d bytes: a SPIFFE ID has at most %d", len(id), maxSPIFFEID)
	case !isSPIFFE || !hasPath || !isTrustDomain(domain) || !isSPIFFEPath(strings.TrimSuffix("/"+path, "/*")):
		c.complain(field, "%q is not of the form spiffe://TRUST-DOMAIN/PATH, or with /* behind it", clip(id))
	case domain != trustDomain:
		c.complain(field, "%q is in another trust domain than the cluster, whose is %s", clip(id), clip(trustDomain))
	}
}

// proxiesBelongToOneCluster matters because a trust domain alone says of which cluster a proxy is, where nothing else does.
func (p *parsing) proxiesBelongToOneCluster() {
	first := map[string]*Cluster{}
	for i := range p.set.Clusters {
		cl := &p.set.Clusters[i]
		other, shared := first[cl.Spec.TrustDomain]
		if !shared {
			first[cl.Spec.TrustDomain] = cl
			continue
		}
		for _, each := range []*Cluster{other, cl} {
			if len(each.Spec.Proxies) == 0 {
				p.of(KindCluster, string(each.Metadata.Name)).complain("spec.trustDomain", "%s is the trust domain of clusters %s and %s: give each its own, or say in spec.proxies of both whose ids are whose",
					clip(cl.Spec.TrustDomain), other.Metadata.Name, cl.Metadata.Name)
			}
		}
	}
}

// isTrustDomain follows the SPIFFE ID specification, section 2.1.
func isTrustDomain(s string) bool {
	return s != "" && len(s) <= 255 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}

// isSPIFFEPath follows the SPIFFE ID specification, section 2.2. The empty path is one: that of a whole trust domain.
func isSPIFFEPath(s string) bool {
	if s == "" {
		return true
	}
	for segment := range strings.SplitSeq(s[1:], "/") {
		if segment == "" || segment == "." || segment == ".." || strings.Trim(segment, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") != "" {
			return false
		}
	}
	return true
}

// isSubdomain says whether s is a DNS-1123 subdomain, as the names of service accounts are.
func isSubdomain(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return len(s) <= 253
}
