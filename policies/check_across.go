package policies

import (
	"fmt"
	"net/netip"
	"slices"
)

// acrossKinds checks what no object can say alone. It makes do with objects that have faults of their own, so that all
// errors of a run are reported together.
func (p *parsing) acrossKinds() {
	p.addressesBelongToOneCluster()
	p.proxiesBelongToOneCluster()
	p.requestsFindOneService()
	p.portsAreDistinct()
	p.gatewaysSelectDistinctProxies()
	p.poolsCanBeRead()
	p.rulesCanBeApplied()
	p.rulesDoNotOverlap()
}

// addressesBelongToOneCluster matters because where an address is decides what may be sent to it.
func (p *parsing) addressesBelongToOneCluster() {
	owner := map[netip.AddrPort]ClusterName{}
	claim := func(c check, field string, a Address, cluster ClusterName) {
		other, taken := owner[a.AddrPort()]
		switch {
		case !a.Address.IsValid() || a.Port == 0 || cluster == "":
		case taken && other != cluster:
			c.complain(field, "%s is in cluster %s already: an address is in one place", a.AddrPort(), other)
		default:
			owner[a.AddrPort()] = cluster
		}
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
	models, paths := choices{p: p, taken: map[string]ServiceName{}}, choices{p: p, taken: map[string]ServiceName{}}
	for i := range p.set.Services {
		s := &p.set.Services[i]
		for j, m := range s.Spec.Models {
			models.claim(s, fmt.Sprintf("spec.models[%d]", j), m, fmt.Sprintf("model %q", clip(m)))
		}
		if s.Spec.Protocol == ProtocolOpenAI { // its paths carry a model, which chooses
			continue
		}
		for j, path := range s.Spec.Paths {
			for _, host := range orAny(s.Spec.Hosts) {
				paths.claim(s, fmt.Sprintf("spec.paths[%d]", j), host+path, fmt.Sprintf("path %q on host %q", clip(path), host))
			}
		}
	}
}

// choices are what requests choose services by.
type choices struct {
	p     *parsing
	taken map[string]ServiceName
}

func (c *choices) claim(s *Service, field, key, what string) {
	if other, twice := c.taken[key]; twice && other != s.Metadata.Name {
		c.p.of(KindService, string(s.Metadata.Name)).complain(field, "Service %s has %s already: a request must find one service", other, what)
		return
	}
	c.taken[key] = s.Metadata.Name
}

func orAny(hosts []string) []string {
	if len(hosts) == 0 {
		return []string{"*"}
	}
	return hosts
}

// portsAreDistinct complains where two listeners of one gateway would bind one address.
func (p *parsing) portsAreDistinct() {
	for i := range p.set.Gateways {
		g := &p.set.Gateways[i]
		b := binding{check: p.of(KindGateway, string(g.Metadata.Name))}
		for j := range g.Spec.Listeners {
			l := &g.Spec.Listeners[j]
			b.bind(fmt.Sprintf("spec.listeners[%d].port", j), netip.AddrPortFrom(l.Address, l.Port), "listener "+clip(l.Name), "choose another port")
			for _, s := range p.set.ServicesOn(l) {
				if s.Spec.Protocol == ProtocolTCP {
					b.bind(fmt.Sprintf("spec.listeners[%d]", j), netip.AddrPortFrom(l.Address, s.Spec.Port),
						fmt.Sprintf("TCP service %s of listener %s", s.Metadata.Name, clip(l.Name)), "name each listener's services")
				}
			}
		}
		if e := g.Spec.EastWest; e != nil {
			b.bind("spec.eastWest.port", netip.AddrPortFrom(e.Address, e.Port), "eastWest", "choose another port")
		}
	}
}

// binding is what one gateway's proxies listen on.
type binding struct {
	check
	bound []bound
}

type bound struct {
	netip.AddrPort
	what string
}

func (b *binding) bind(field string, a netip.AddrPort, what, remedy string) {
	if a.Port() == 0 {
		return
	}
	for _, other := range b.bound {
		if other.Port() == a.Port() && (other.Addr() == a.Addr() || other.Addr().IsUnspecified() || a.Addr().IsUnspecified()) {
			b.complain(field, "%s would listen on %s, where %s does already: %s", what, a, other.what, remedy)
			return
		}
	}
	b.bound = append(b.bound, bound{a, what})
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
	for i := range p.set.Gateways {
		g := &p.set.Gateways[i]
		for j := range p.set.Gateways[:i] {
			other := &p.set.Gateways[j]
			if proxies := p.selectedByBoth(other, g); proxies != "" && !p.of(KindGateway, string(other.Metadata.Name)).doc.wasMisread("spec.proxies") {
				p.of(KindGateway, string(g.Metadata.Name)).complain("spec.proxies", "Gateway %s selects %s already: narrow one of them", other.Metadata.Name, proxies)
			}
		}
	}
}

// selectedByBoth names some proxies that two gateways select; empty where there are none.
func (p *parsing) selectedByBoth(a, b *Gateway) string {
	for _, role := range commonTo(a.Spec.Proxies.Roles, b.Spec.Proxies.Roles) {
		for _, c := range p.set.Clusters {
			if a.Selects(role, c.Spec.Region, c.Metadata.Name) && b.Selects(role, c.Spec.Region, c.Metadata.Name) {
				return fmt.Sprintf("the %s proxies of cluster %s", role, c.Metadata.Name)
			}
		}
		// Proxies need not be in a cluster that a policy names.
		if meet(a.Spec.Proxies.Regions, b.Spec.Proxies.Regions) && meet(a.Spec.Proxies.Clusters, b.Spec.Proxies.Clusters) {
			return fmt.Sprintf("%s proxies in the same place", role)
		}
	}
	return ""
}

// rulesCanBeApplied fails closed at load: a rule on something that a gateway can't tell would never hold there.
func (p *parsing) rulesCanBeApplied() {
	for i := range p.set.Residencies {
		r := &p.set.Residencies[i]
		c := p.of(KindResidency, string(r.Metadata.Name))
		for j := range p.set.Gateways {
			g := &p.set.Gateways[j]
			at := p.of(KindGateway, string(g.Metadata.Name)).doc
			if !g.offersAny(r.Spec.Match.Services) {
				continue
			}
			if len(r.Spec.Match.Countries) > 0 && g.Spec.Location.Source == LocationNone && !at.wasMisread("spec.location") {
				c.complain("spec.match.countries", "Gateway %s (%s:%d) can't tell a client's country: set its spec.location", g.Metadata.Name, at.file, at.at.line)
			}
			if len(r.Spec.Match.Tenants) > 0 && g.Spec.TenantHeader == "" && !at.wasMisread("spec.tenantHeader") {
				c.complain("spec.match.tenants", "Gateway %s (%s:%d) can't tell tenants: set its spec.tenantHeader", g.Metadata.Name, at.file, at.at.line)
			}
		}
	}
}

// offersAny says whether a gateway offers one of these services; none stand for all.
func (g *Gateway) offersAny(services []ServiceName) bool {
	return slices.ContainsFunc(g.Spec.Listeners, func(l Listener) bool { return meet(l.Services, services) })
}

// meet says whether two lists have a value in common; an empty one stands for any value.
func meet[T comparable](a, b []T) bool {
	return len(a) == 0 || len(b) == 0 || len(commonTo(a, b)) > 0
}

// commonTo are the values in both lists, in the order of the first.
func commonTo[T comparable](a, b []T) []T {
	return slices.DeleteFunc(slices.Clone(a), func(v T) bool { return !slices.Contains(b, v) })
}
