package policies

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

func (p *parsing) services() {
	for i := range p.set.Services {
		s := &p.set.Services[i]
		c := p.of(KindService, string(s.Metadata.Name))
		orDefault(&s.Spec.Protocol, ProtocolOpenAI)
		c.oneOf("spec.protocol", string(s.Spec.Protocol), string(ProtocolOpenAI), string(ProtocolHTTP), string(ProtocolGRPC), string(ProtocolTCP))
		c.matching(&s.Spec)
		c.pools(s.Spec.Pools)
		c.capacity(&s.Spec)
		c.health(&s.Spec)
	}
}

// matching checks the fields by which requests find a service.
func (c check) matching(s *ServiceSpec) {
	openAI, tcp := s.Protocol == ProtocolOpenAI, s.Protocol == ProtocolTCP
	c.onlyWith("spec.models", len(s.Models) > 0, openAI, "OpenAI services")
	c.onlyWith("spec.hosts", len(s.Hosts) > 0, !openAI && !tcp, "HTTP and GRPC services")
	c.onlyWith("spec.paths", len(s.Paths) > 0, !tcp, "OpenAI, HTTP and GRPC services")
	c.onlyWith("spec.port", s.Port != 0, tcp, "TCP services")
	switch {
	case openAI && len(s.Models) == 0:
		c.complain("spec.models", "is missing: name the models that choose this service")
	case !openAI && !tcp && len(s.Paths) == 0:
		c.complain("spec.paths", "is missing: name the path prefixes that choose this service, or \"/\" for all")
	case tcp && s.Port == 0:
		c.complain("spec.port", "is missing: name the port on which gateways listen for this service")
	}
	distinct(c, "spec.models", s.Models)
	distinct(c, "spec.hosts", s.Hosts)
	distinct(c, "spec.paths", s.Paths)
	for i, m := range s.Models {
		c.model(fmt.Sprintf("spec.models[%d]", i), m)
	}
	for i, path := range s.Paths {
		c.path(fmt.Sprintf("spec.paths[%d]", i), path, openAI)
	}
	for i, h := range s.Hosts {
		if !isHost(h) {
			c.complain(fmt.Sprintf("spec.hosts[%d]", i), "%q is not an exact host name: lower-case letters, digits, '-' and '.', without port", clip(h))
		}
	}
}

// isHost says whether s is a DNS name in lower case.
func isHost(s string) bool {
	return len(s) <= 253 && !slices.ContainsFunc(strings.Split(s, "."), func(label string) bool { return !isLabel(label) })
}

func (c check) onlyWith(field string, given, allowed bool, what string) {
	if given && !allowed {
		c.complain(field, "is only for %s: remove it", what)
	}
}

// maxModelName is the longest model name that is matched; longer ones are not found.
const maxModelName = 256

func (c check) model(field, model string) {
	star := strings.IndexByte(model, '*')
	switch {
	case model == "" || model == "*":
		c.complain(field, "%q would take every model: name models, or a prefix ending in \"*\"", model)
	case star >= 0 && star != len(model)-1:
		c.complain(field, "%q has a \"*\" that is not at the end", clip(model))
	case len(model) > maxModelName:
		c.complain(field, "is longer than %d characters", maxModelName)
	case strings.ContainsFunc(model, func(r rune) bool { return r <= ' ' || r > '~' }):
		c.complain(field, "%q has characters that no header can carry", clip(model))
	}
}

func (c check) path(field, path string, openAI bool) {
	braces := strings.Count(path, "{model}")
	switch {
	case !strings.HasPrefix(path, "/"):
		c.complain(field, "%q does not begin with \"/\"", clip(path))
	case openAI && braces != 1:
		c.complain(field, "%q must have \"{model}\" once: it is where the model's name stands", clip(path))
	case !openAI && braces != 0:
		c.complain(field, "\"{model}\" is only for OpenAI services")
	case strings.ContainsFunc(strings.Replace(path, "{model}", "", 1), func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("{}?#", r) }):
		c.complain(field, "%q has characters that don't belong in a path prefix", clip(path))
	}
}

func (c check) pools(pools []Pool) {
	if len(pools) == 0 {
		c.complain("spec.pools", "is empty: name at least one cluster and its endpoints")
	}
	seen := map[ClusterName]bool{}
	for i, pool := range pools {
		field := fmt.Sprintf("spec.pools[%d]", i)
		c.reference(field+".cluster", KindCluster, string(pool.Cluster))
		if seen[pool.Cluster] {
			c.complain(field+".cluster", "%s has a pool already: put all its endpoints into one", pool.Cluster)
		}
		seen[pool.Cluster] = true
		c.endpoints(field, &pools[i])
	}
}

// endpoints checks where a pool's endpoints come from.
func (c check) endpoints(field string, pool *Pool) {
	switch {
	case pool.From != nil && len(pool.Endpoints) > 0:
		c.complain(field+".endpoints", "stands beside from: give one of them")
	case pool.From != nil:
		c.source(field, pool)
	case len(pool.Endpoints) == 0:
		c.complain(field+".endpoints", "is empty: give at least one address, or say in from where they are read")
	}
	c.addresses(field+".endpoints", pool.Endpoints)
}

func (c check) capacity(s *ServiceSpec) {
	source := CapacityStatic
	if s.Protocol == ProtocolOpenAI {
		source = CapacityVLLM
	}
	k := &s.Capacity
	orDefault(&k.Source, source)
	c.oneOf("spec.capacity.source", string(k.Source), string(CapacityStatic), string(CapacityVLLM))
	between(c, "spec.capacity.slotsPerEndpoint", &k.SlotsPerEndpoint, bounds{256, 1, 1_000_000})
	between(c, "spec.capacity.queuePerEndpoint", &k.QueuePerEndpoint, bounds{0, 0, 1_000_000})
	c.duration("spec.capacity.interval", &k.Interval, time.Second, 100*time.Millisecond, time.Hour)
	for _, field := range []string{"metricsPath", "metricsPort", "interval"} {
		c.onlyWith("spec.capacity."+field, c.written("spec.capacity."+field), k.Source != CapacityStatic, "sources that are scraped, and Static is not")
	}
	orDefault(&k.MetricsPath, "/metrics")
	c.urlPath("spec.capacity.metricsPath", k.MetricsPath)
}

func (c check) urlPath(field, path string) {
	if !strings.HasPrefix(path, "/") || strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' }) {
		c.complain(field, "%q is not a path: begin it with \"/\" and escape what is not ASCII", clip(path))
	}
}

func (c check) health(s *ServiceSpec) {
	types := map[Protocol]HealthCheckType{ProtocolOpenAI: HealthHTTP, ProtocolHTTP: HealthHTTP, ProtocolGRPC: HealthGRPC, ProtocolTCP: HealthTCP}
	h := &s.Health
	orDefault(&h.Type, types[s.Protocol])
	orDefault(&h.Type, HealthTCP)
	c.oneOf("spec.health.type", string(h.Type), string(HealthHTTP), string(HealthGRPC), string(HealthTCP))
	c.onlyWith("spec.health.path", h.Path != "", h.Type == HealthHTTP, "HTTP checks")
	c.onlyWith("spec.health.service", h.Service != "", h.Type == HealthGRPC, "GRPC checks")
	if h.Type == HealthHTTP {
		orDefault(&h.Path, "/health")
		c.urlPath("spec.health.path", h.Path)
	}
	c.duration("spec.health.interval", &h.Interval, 500*time.Millisecond, 100*time.Millisecond, 10*time.Minute)
	c.duration("spec.health.timeout", &h.Timeout, 500*time.Millisecond, 50*time.Millisecond, time.Minute)
	between(c, "spec.health.unhealthyThreshold", &h.UnhealthyThreshold, bounds{2, 1, 100})
	between(c, "spec.health.healthyThreshold", &h.HealthyThreshold, bounds{2, 1, 100})
}
