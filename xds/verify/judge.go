package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// kind are requests that rules and configuration treat alike, with one of them as an example.
type kind struct {
	example         subject
	bound, refusing []*rule
	// foreign says that it is of a tenant whom the proxies may not serve.
	foreign bool
}

// rules tells kinds apart by what binds them.
func (k *kind) rules() string {
	var b strings.Builder
	for _, r := range k.bound {
		b.WriteString(string(r.name()) + " ")
	}
	for _, r := range k.refusing {
		b.WriteString("!" + string(r.name()) + " ")
	}
	if k.foreign {
		b.WriteString("foreign")
	}
	return b.String()
}

// admission is one way on that a kind of request can take.
type admission struct {
	kind   *kind
	target *target
}

// admissionKey names what admissions follow from, besides policies.
type admissionKey struct {
	tenants                                 world.Tenants
	gateway                                 policies.GatewayName
	listener, listenerVersion, routeVersion string
}

// admit finds every way on that a client's request can take through a listener's filters and routes.
func (k *walk) admit(name string, c chain, routes *routing) []admission {
	if routes == nil {
		return nil
	}
	k.asked(name, routes)
	inputs, seen := routes.inputs()
	c.values(seen)
	ways := ways{routes: routes, inputs: inputs, taken: map[string][]*target{}, known: map[string]bool{}}
	for _, s := range k.rules.subjects(seen, xds.HeaderCountry, k.gateway.Spec.TenantHeader, k.gateway.Spec.DataLabelHeader) {
		h, err := c.run(s)
		if err == nil {
			err = ways.add(h, k.kindOf(s))
		}
		if err != nil {
			k.follow(name, err)
			return nil
		}
	}
	return ways.admissions
}

func (k *walk) kindOf(s subject) *kind {
	bound, refusing := k.rules.binding(s)
	return &kind{s, bound, refusing, k.tenants != nil && !slices.Contains(k.tenants, s.tenant)}
}

// ways collects the ways that requests take, once for each kind.
type ways struct {
	routes     *routing
	inputs     []string
	taken      map[string][]*target // by what the routes see of the headers
	known      map[string]bool      // kinds that were seen already, by headers and rules
	admissions []admission
}

func (w *ways) add(h headers, k *kind) error {
	seen := h.key(w.inputs)
	same := seen + "\n" + k.rules()
	if w.known[same] {
		return nil
	}
	w.known[same] = true
	targets, ok := w.taken[seen]
	if !ok {
		var err error
		if targets, err = w.routes.targets(h); err != nil {
			return err
		}
		targets = distinct(targets)
		w.taken[seen] = targets
	}
	for _, t := range targets {
		w.admissions = append(w.admissions, admission{k, t})
	}
	return nil
}

// distinct drops targets that were there already: several paths lead to the same routes.
func distinct(targets []*target) []*target {
	known := make(map[*target]bool, len(targets))
	return slices.DeleteFunc(targets, func(t *target) bool {
		before := known[t]
		known[t] = true
		return before
	})
}

// judge checks everything that an admission reaches against the rules that bind the request.
func (k *walk) judge(a admission) {
	t := a.target
	v := Violation{Resource: t.resource, Route: t.route, Cluster: t.cluster, Detail: a.kind.example.String()}
	if a.kind.foreign {
		v.Code = ForeignTenant
		k.report(v)
		return
	}
	if refusing := concerning(a.kind.refusing, t.service); len(refusing) > 0 {
		v.Code, v.Policies = LocationUnknown, refusing
		k.report(v)
		return
	}
	bound := concerning(a.kind.bound, t.service)
	if want := world.ClassOf(bound); t.class != want || t.cluster != xds.ClassCluster(t.service, want) {
		w := v
		w.Code, w.Policies = WrongClass, bound
		w.Detail += fmt.Sprintf(": passed on for service %q as class %q, the rules make it %q", t.service, t.class, want)
		k.report(w)
	}
	for _, s := range k.reach(entry{cluster: t.cluster, service: t.service}) {
		k.inside(v, s, a.kind.bound, t)
		k.serves(v, s, t)
	}
}

// inside checks a site against the boundary of each rule that binds a request for the target's service, or for the
// service that is really there.
func (k *walk) inside(v Violation, s site, bound []*rule, t *target) {
	for _, r := range bound {
		if (r.concerns(t.service) || !s.gateway && r.concerns(s.service)) && !r.permits(s.region) {
			v.Code, v.Policies = OutsideBoundary, []policies.ResidencyName{r.name()}
			k.report(v.at(s))
		}
	}
}

// serves checks that a site serves what was asked for, and that a gateway is asked for it.
func (k *walk) serves(v Violation, s site, t *target) {
	switch {
	case !s.gateway && s.service != t.service:
		v.Code, v.Detail = WrongService, fmt.Sprintf("asked for %q, it serves %q", t.service, s.service)
		k.report(v.at(s))
	case s.gateway && s.serverName != k.serverName(t):
		v.Code, v.Detail = WrongClass, fmt.Sprintf("the gateway is asked for %q instead of %q", s.serverName, k.serverName(t))
		k.report(v.at(s))
	}
}

// serverName is how gateways are to be asked for a target's requests.
func (k *walk) serverName(t *target) string {
	if k.tcp[t.service] {
		return xds.TCPServerName(t.service, t.class)
	}
	return xds.HTTPServerName
}

// at says where a violation leads.
func (v Violation) at(s site) Violation {
	v.Cluster, v.Address, v.Region = s.via, s.address, s.region.Metadata.Name
	return v
}
