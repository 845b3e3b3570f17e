package policies

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// acrossKinds checks what no object can say alone. It runs only when every object is good by itself.
func (p *parsing) acrossKinds() {
	p.addressesBelongToOneCluster()
	p.requestsFindOneService()
	p.portsAreDistinct()
	p.gatewaysSelectDistinctProxies()
	p.rulesCanBeApplied()
	p.rulesDoNotOverlap()
}

// addressesBelongToOneCluster matters because where an address is decides what may be sent to it.
func (p *parsing) addressesBelongToOneCluster() {
	owner := map[netip.AddrPort]ClusterName{}
	claim := func(c check, field string, a Address, cluster ClusterName) {
		if other, taken := owner[a.AddrPort()]; taken && other != cluster {
			c.complain(field, "%s is in cluster %s already: an address is in one place", a.AddrPort(), other)
		}
		owner[a.AddrPort()] = cluster
	}
	for _, cl := range p.set.Clusters {
		for i, a := range cl.Spec.Gateways {
			claim(p.of(KindCluster, string(cl.Metadata.Name)), fmt.Sprintf("spec.gateways[%d]", i), a, cl.Metadata.Name)
		}
	}
	for _, s := range p.set.Services {
		for i, pool := range s.Spec.Pools {
			for j, a := range pool.Endpoints {
				claim(p.of(KindService, string(s.Metadata.Name)), fmt.Sprintf("spec.pools[%d].endpoints[%d]", i, j), a, pool.Cluster)
			}
		}
	}
}

// requestsFindOneService complains about two services that the same request would choose.
func (p *parsing) requestsFindOneService() {
	taken := map[string]ServiceName{}
	claim := func(s *Service, field, key, what string) {
		if other, twice := taken[key]; twice && other != s.Metadata.Name {
			p.of(KindService, string(s.Metadata.Name)).complain(field, "Service %s has %s already: a request must find one service", other, what)
			return
		}
		taken[key] = s.Metadata.Name
	}
	for i := range p.set.Services {
		s := &p.set.Services[i]
		for j, m := range s.Spec.Models {
			claim(s, fmt.Sprintf("spec.models[%d]", j), "model "+m, fmt.Sprintf("model %q", m))
		}
		if s.Spec.Protocol == ProtocolOpenAI {
			continue
		}
		for j, path := range s.Spec.Paths {
			for _, host := range orAny(s.Spec.Hosts) {
				claim(s, fmt.Sprintf("spec.paths[%d]", j), "path "+host+path, fmt.Sprintf("path %q on host %q", path, host))
			}
		}
	}
}

func orAny(hosts []string) []string {
	if len(hosts) == 0 {
		return []string{"*"}
	}
	return hosts
}

// portsAreDistinct complains where two listeners of one gateway would bind one address.
func (p *parsing) portsAreDistinct() {
	for _, g := range p.set.Gateways {
		c := p.of(KindGateway, string(g.Metadata.Name))
		bound := map[netip.AddrPort]string{}
		bind := func(field string, a netip.AddrPort, what string) {
			if other, taken := bound[a]; taken {
				c.complain(field, "%s listens on %s already", other, a)
			}
			bound[a] = what
		}
		for i, l := range g.Spec.Listeners {
			bind(fmt.Sprintf("spec.listeners[%d].port", i), netip.AddrPortFrom(l.Address, l.Port), "listener "+l.Name)
			for _, s := range p.set.ServicesOn(&l) {
				if s.Spec.Protocol == ProtocolTCP {
					bind(fmt.Sprintf("spec.listeners[%d]", i), netip.AddrPortFrom(l.Address, s.Spec.Port), "TCP service "+string(s.Metadata.Name))
				}
			}
		}
		if e := g.Spec.EastWest; e != nil {
			bind("spec.eastWest.port", netip.AddrPortFrom(e.Address, e.Port), "eastWest")
		}
	}
}

// ServicesOn are the services that a listener offers, sorted by name.
func (s *Set) ServicesOn(l *Listener) []*Service {
	var services []*Service
	for i := range s.Services {
		if len(l.Services) == 0 || slices.Contains(l.Services, s.Services[i].Metadata.Name) {
			services = append(services, &s.Services[i])
		}
	}
	return services
}

func (p *parsing) gatewaysSelectDistinctProxies() {
	for _, cl := range p.set.Clusters {
		for _, role := range []Role{RoleGateway, RoleSidecar} {
			var first GatewayName
			for _, g := range p.set.Gateways {
				if !g.Selects(role, cl.Spec.Region, cl.Metadata.Name) {
					continue
				}
				if first != "" {
					p.of(KindGateway, string(g.Metadata.Name)).complain("spec.proxies",
						"Gateway %s selects the %s proxies of cluster %s already: narrow one of them", first, role, cl.Metadata.Name)
				}
				first = g.Metadata.Name
			}
		}
	}
}

// rulesCanBeApplied fails closed at load: a rule on something that a gateway can't tell would never hold there.
func (p *parsing) rulesCanBeApplied() {
	for _, r := range p.set.Residencies {
		c := p.of(KindResidency, string(r.Metadata.Name))
		for _, g := range p.set.Gateways {
			if len(r.Spec.Match.Countries) > 0 && g.Spec.Location.Source == LocationNone {
				c.complain("spec.match.countries", "Gateway %s can't tell a client's country: set its spec.location", g.Metadata.Name)
			}
			if len(r.Spec.Match.Tenants) > 0 && g.Spec.TenantHeader == "" {
				c.complain("spec.match.tenants", "Gateway %s can't tell tenants: set its spec.tenantHeader", g.Metadata.Name)
			}
		}
	}
}

// rulesDoNotOverlap complains about two rules that match the same value on the same dimensions: rules on different
// dimensions are meant to intersect, but two on one are a contradiction or a repetition.
func (p *parsing) rulesDoNotOverlap() {
	for i, a := range p.set.Residencies {
		for _, b := range p.set.Residencies[:i] {
			common, overlap := overlapOf(a.Spec.Match, b.Spec.Match)
			if overlap {
				p.of(KindResidency, string(a.Metadata.Name)).complain("spec.match",
					"overlaps Residency %s on %s: merge the two, or tell them apart", b.Metadata.Name, common)
			}
		}
	}
}

// overlapOf says what two matches have in common where they are on the same dimensions and a request could match both.
func overlapOf(a, b ResidencyMatch) (common string, overlap bool) {
	countries := commonTo(asStrings(a.CountrySet.Countries()), asStrings(b.CountrySet.Countries()))
	tenants := commonTo(asStrings(a.Tenants), asStrings(b.Tenants))
	labels := commonTo(asStrings(a.Labels), asStrings(b.Labels))
	services := commonTo(asStrings(a.Services), asStrings(b.Services))
	var parts []string
	for _, d := range []struct {
		name   string
		na, nb int
		both   []string
	}{
		{"country", len(a.Countries), len(b.Countries), countries}, {"tenant", len(a.Tenants), len(b.Tenants), tenants},
		{"label", len(a.Labels), len(b.Labels), labels}, {"service", len(a.Services), len(b.Services), services},
	} {
		if (d.na > 0) != (d.nb > 0) || (d.na > 0 && len(d.both) == 0) {
			return "", false
		}
		if d.na > 0 {
			parts = append(parts, d.name+" "+d.both[0])
		}
	}
	return strings.Join(parts, " and "), true
}

// commonTo are the values in both lists, in the order of the first.
func commonTo(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(v string) bool { return !slices.Contains(b, v) })
}
