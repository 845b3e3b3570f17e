package policies

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

func (p *parsing) gateways() {
	for i := range p.set.Gateways {
		g := &p.set.Gateways[i]
		c := p.of(KindGateway, string(g.Metadata.Name))
		c.selector(&g.Spec.Proxies)
		c.selectsSomething(&g.Spec.Proxies)
		c.listeners(g.Spec.Listeners)
		c.eastWest(g)
		c.locationSource(&g.Spec.Location)
		between(c, "spec.trustedHops", &g.Spec.TrustedHops, bounds{0, 0, 16})
		between(c, "spec.maxBodyBytes", &g.Spec.MaxBodyBytes, bounds{16 << 20, 1 << 10, 1 << 30})
		orDefault(&g.Spec.DataLabelHeader, "x-data-label")
		c.header("spec.dataLabelHeader", g.Spec.DataLabelHeader)
		if g.Spec.TenantHeader != "" {
			c.header("spec.tenantHeader", g.Spec.TenantHeader)
		}
		if g.Spec.TenantHeader == g.Spec.DataLabelHeader {
			c.complain("spec.tenantHeader", "is %s, as dataLabelHeader is: a header says one thing", clip(g.Spec.TenantHeader))
		}
		if g.Spec.ResponseHeaders == nil {
			yes := true
			g.Spec.ResponseHeaders = &yes
		}
	}
}

func (c check) header(field, name string) {
	switch {
	case name != strings.ToLower(name) || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
		c.complain(field, "%q is not a header name in lower case", clip(name))
	case strings.HasPrefix(name, "x-meridian-"):
		c.complain(field, "%q begins with x-meridian-, which is stripped from every request: choose another name", clip(name))
	}
}

func (c check) selector(s *ProxySelector) {
	if len(s.Roles) == 0 {
		s.Roles = []Role{RoleGateway}
	}
	for i, r := range s.Roles {
		c.oneOf(fmt.Sprintf("spec.proxies.roles[%d]", i), string(r), string(RoleGateway), string(RoleSidecar))
	}
	for i, r := range s.Regions {
		c.reference(fmt.Sprintf("spec.proxies.regions[%d]", i), KindRegion, string(r))
	}
	for i, v := range s.Clusters {
		c.reference(fmt.Sprintf("spec.proxies.clusters[%d]", i), KindCluster, string(v))
	}
	distinct(c, "spec.proxies.roles", s.Roles)
	distinct(c, "spec.proxies.regions", s.Regions)
	distinct(c, "spec.proxies.clusters", s.Clusters)
}

// selectsSomething complains where the regions and the clusters exclude each other.
func (c check) selectsSomething(s *ProxySelector) {
	inside := func(name ClusterName) bool {
		cluster, ok := c.p.set.Cluster(name)
		return !ok || slices.Contains(s.Regions, cluster.Spec.Region)
	}
	if len(s.Regions) > 0 && len(s.Clusters) > 0 && !slices.ContainsFunc(s.Clusters, inside) {
		c.complain("spec.proxies", "selects nothing: none of its clusters is in its regions")
	}
}

func (c check) listeners(listeners []Listener) {
	if len(listeners) == 0 {
		c.complain("spec.listeners", "is empty: clients need at least one")
	}
	names := make([]string, len(listeners))
	for i := range listeners {
		c.listener(fmt.Sprintf("spec.listeners[%d]", i), &listeners[i])
		names[i] = listeners[i].Name
	}
	distinct(c, "spec.listeners", names)
}

func (c check) listener(field string, l *Listener) {
	if !isLabel(l.Name) {
		c.complain(field+".name", "%q is not a name: lower-case letters, digits and '-'", clip(l.Name))
	}
	c.bind(field, &l.Address, l.Port)
	for i, s := range l.Services {
		c.reference(fmt.Sprintf("%s.services[%d]", field, i), KindService, string(s))
	}
	distinct(c, field+".services", l.Services)
	if l.TLS != nil {
		c.files(field+".tls", map[string]string{"certificateFile": l.TLS.CertificateFile, "privateKeyFile": l.TLS.PrivateKeyFile})
	}
}

// bind checks where a proxy listens. Unlike an endpoint's, the address may be unspecified: all of the machine's.
func (c check) bind(field string, address *netip.Addr, port uint16) {
	orDefault(address, loopback)
	if address.Is4In6() || address.IsMulticast() || address.Zone() != "" {
		c.complain(field+".address", "%s is not an address to listen on", address)
	}
	if port == 0 {
		c.complain(field+".port", "is missing: give a port from 1 to 65535")
	}
}

func (c check) files(field string, paths map[string]string) {
	for _, name := range []string{"certificateFile", "privateKeyFile", "trustBundleDir"} {
		if path, wanted := paths[name]; wanted && path == "" {
			c.complain(join(field, name), "is missing: a path on the proxy's own disk")
		}
	}
}

func (c check) eastWest(g *Gateway) {
	e := g.Spec.EastWest
	if e == nil {
		return
	}
	c.bind("spec.eastWest", &e.Address, e.Port)
	c.files("spec.eastWest", map[string]string{"certificateFile": e.CertificateFile, "privateKeyFile": e.PrivateKeyFile, "trustBundleDir": e.TrustBundleDir})
}

func (c check) locationSource(l *LocationSource) {
	orDefault(&l.Source, LocationNone)
	c.oneOf("spec.location.source", string(l.Source), string(LocationNone), string(LocationGeoIP), string(LocationGeoService))
	c.onlyWith("spec.location.database", l.Database != "", l.Source == LocationGeoIP, "source GeoIP")
	c.onlyWith("spec.location.service", l.Service != nil, l.Source == LocationGeoService, "source GeoService")
	switch l.Source {
	case LocationGeoIP:
		switch {
		case l.Database == "":
			c.complain("spec.location.database", "is missing: the path of an MMDB on the proxy's disk")
		case !strings.HasSuffix(l.Database, ".mmdb"):
			c.complain("spec.location.database", "%q does not end in .mmdb: Envoy refuses any other name", clip(l.Database))
		}
	case LocationGeoService:
		if l.Service == nil {
			c.complain("spec.location.service", "is missing: the address of the geo service")
		} else {
			c.address("spec.location.service", *l.Service)
		}
	}
}

// Selects says whether the gateway is for proxies of a role in a cluster of a region.
func (g *Gateway) Selects(role Role, region RegionName, cluster ClusterName) bool {
	p := g.Spec.Proxies
	return slices.Contains(p.Roles, role) &&
		(len(p.Regions) == 0 || slices.Contains(p.Regions, region)) &&
		(len(p.Clusters) == 0 || slices.Contains(p.Clusters, cluster))
}

// GatewayFor finds the gateway that selects such proxies; ok is false where none does.
func (s *Set) GatewayFor(role Role, region RegionName, cluster ClusterName) (gateway *Gateway, ok bool) {
	for i := range s.Gateways {
		if s.Gateways[i].Selects(role, region, cluster) {
			return &s.Gateways[i], true
		}
	}
	return nil, false
}
