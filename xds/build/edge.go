package build

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	match "github.com/cncf/xds/go/xds/type/matcher/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// edge builds the client-facing listeners and their routes.
func (b *builder) edge(c *collector) {
	for i := range b.gateway.Spec.Listeners {
		l := &b.gateway.Spec.Listeners[i]
		services := b.set.ServicesOn(l)
		b.httpListener(c, l, services)
		for _, s := range services {
			if s.Spec.Protocol == policies.ProtocolTCP {
				b.tcpListener(c, l, s)
			}
		}
	}
}

func (b *builder) httpListener(c *collector, l *policies.Listener, services []*policies.Service) {
	if !slices.ContainsFunc(services, speaksHTTP) {
		return
	}
	openAI := slices.ContainsFunc(services, speaksOpenAI)
	name, routes := xds.EdgeListener(b.gateway.Metadata.Name, l.Name), xds.EdgeRoutes(b.gateway.Metadata.Name, l.Name)
	m := httpManager(name, b.httpFilters(c, openAI))
	m.RouteSpecifier = routesOverADS(routes)
	m.UseRemoteAddress = boolValue(true)
	m.XffNumTrustedHops = uint32(b.gateway.Spec.TrustedHops)
	m.NormalizePath = boolValue(true)
	m.MergeSlashes = true
	m.PathWithEscapedSlashesAction = hcm.HttpConnectionManager_REJECT_REQUEST
	m.StripPortMode = &hcm.HttpConnectionManager_StripAnyHostPort{StripAnyHostPort: true}
	out := &listener.Listener{
		Name: name, Address: socketAddress(l.Address.String(), l.Port), PerConnectionBufferLimitBytes: uint32Value(connectionBuffer),
		FilterChains: []*listener.FilterChain{{Filters: []*listener.Filter{managerFilter(c, m)}, TransportSocket: b.listenerTLS(c, l)}},
	}
	c.add(xds.TypeListener, name, out)
	c.add(xds.TypeRoute, routes, b.edgeRoutes(c, routes, services))
}

func speaksHTTP(s *policies.Service) bool   { return s.Spec.Protocol != policies.ProtocolTCP }
func speaksOpenAI(s *policies.Service) bool { return s.Spec.Protocol == policies.ProtocolOpenAI }

// httpManager is what every HTTP connection manager here shares: no bound on the length of a response, and Envoy's own
// answers in our words.
func httpManager(name string, filters []*hcm.HttpFilter) *hcm.HttpConnectionManager {
	return &hcm.HttpConnectionManager{
		StatPrefix:        strings.ReplaceAll(name, "/", "_"),
		HttpFilters:       filters,
		StreamIdleTimeout: duration(0),
		LocalReplyConfig:  localReplies(),
	}
}

func routesOverADS(name string) *hcm.HttpConnectionManager_Rds {
	return &hcm.HttpConnectionManager_Rds{Rds: &hcm.Rds{RouteConfigName: name, ConfigSource: overADS()}}
}

func managerFilter(c *collector, m *hcm.HttpConnectionManager) *listener.Filter {
	return &listener.Filter{Name: "envoy.filters.network.http_connection_manager", ConfigType: &listener.Filter_TypedConfig{TypedConfig: c.any(m)}}
}

// maxDirectResponse bounds answers that routes give themselves, such as the list of models.
const maxDirectResponse = 1 << 20

// edgeRoutes has a virtual host for each host that a service names, and one for any.
func (b *builder) edgeRoutes(c *collector, name string, services []*policies.Service) *route.RouteConfiguration {
	out := &route.RouteConfiguration{Name: name, ValidateClusters: boolValue(false), MaxDirectResponseBodySizeBytes: uint32Value(maxDirectResponse)}
	hosts := map[string]bool{"*": true}
	for _, s := range services {
		for _, h := range s.Spec.Hosts {
			hosts[h] = true
		}
	}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		out.VirtualHosts = append(out.VirtualHosts, &route.VirtualHost{
			Name: host, Domains: []string{host}, RequestBodyBufferLimit: wrapperspb.UInt64(uint64(b.gateway.Spec.MaxBodyBytes)),
			Matcher: b.ofTenants(c, b.byPath(c, host, services)),
		})
	}
	return out
}

// bodyPath matches the paths of the OpenAI API whose body names the model: one branch for all of them, since what hangs
// on it is most of a route configuration.
const bodyPath = `/v1/(chat/completions|completions|embeddings|responses)([/?].*)?`

// modelHeader is what a model's name must look like to be looked up at all.
const modelHeader = `[^\x00-\x1f\x7f]{1,256}`

// ofTenants lets requests of the tenants pass that the proxies may serve, which is all of them for most.
func (b *builder) ofTenants(c *collector, tree *match.Matcher) *match.Matcher {
	refuse := then(c, foreignTenant.code, foreignTenant.route())
	switch {
	case b.viewpoint.Tenants == world.AllTenants:
		return tree
	case b.gateway.Spec.TenantHeader == "": // nobody says whose a request is
		return onHeader(c, xds.HeaderTenantGroup, map[string]*match.Matcher_OnMatch{foreign: refuse}, refuse)
	}
	return onHeader(c, xds.HeaderTenantGroup, map[string]*match.Matcher_OnMatch{foreign: refuse}, nest(tree))
}

// byPath finds the service by path, on one host.
func (b *builder) byPath(c *collector, host string, services []*policies.Service) *match.Matcher {
	openAI := slices.ContainsFunc(services, speaksOpenAI)
	paths := map[string]*match.Matcher_OnMatch{}
	if openAI {
		paths["/v1/models"] = then(c, "models", modelList(services))
	}
	for _, s := range services {
		for _, p := range pathsOf(s, host) {
			paths[p] = b.admit(c, s)
		}
	}
	byPrefix := onPrefix(c, ":path", paths, then(c, "not-found", pathNotFound.route()))
	if !openAI {
		return byPrefix
	}
	byModel := ifHeader(c, xds.HeaderModel, modelHeader, b.byModel(c, services), then(c, "no-model", invalidRequest.route()))
	return ifHeader(c, ":path", bodyPath, nest(byModel), nest(byPrefix))
}

// pathsOf are the path prefixes that choose a service by themselves on a host.
func pathsOf(s *policies.Service, host string) []string {
	switch s.Spec.Protocol {
	case policies.ProtocolTCP:
		return nil
	case policies.ProtocolOpenAI:
		return modelPaths(s)
	}
	if len(s.Spec.Hosts) > 0 && !slices.Contains(s.Spec.Hosts, host) {
		return nil
	}
	return s.Spec.Paths
}

// modelPaths are an OpenAI service's paths with each of its models in its place. A model that ends in "*" ends the prefix.
func modelPaths(s *policies.Service) []string {
	var paths []string
	for _, p := range s.Spec.Paths {
		before, after, _ := strings.Cut(p, "{model}")
		for _, m := range s.Spec.Models {
			if prefix, wild := strings.CutSuffix(m, "*"); wild {
				paths = append(paths, before+prefix)
				continue
			}
			paths = append(paths, before+m+after)
		}
	}
	return paths
}

// byModel finds the service by the model's whole name, then by the longest prefix that ends in "*".
func (b *builder) byModel(c *collector, services []*policies.Service) *match.Matcher_OnMatch {
	exact, prefixes := map[string]*match.Matcher_OnMatch{}, map[string]*match.Matcher_OnMatch{}
	for _, s := range services {
		var to *match.Matcher_OnMatch
		for _, m := range s.Spec.Models {
			if to == nil {
				to = b.admit(c, s)
			}
			if prefix, wild := strings.CutSuffix(m, "*"); wild {
				prefixes[prefix] = to
				continue
			}
			exact[m] = to
		}
	}
	none := then(c, "model-not-found", modelNotFound.route())
	if len(prefixes) > 0 {
		none = nest(onPrefix(c, xds.HeaderModel, prefixes, none))
	}
	if len(exact) == 0 {
		return none
	}
	return nest(onHeader(c, xds.HeaderModel, exact, none))
}

// modelList answers GET /v1/models: what may be asked for here.
func modelList(services []*policies.Service) *route.Route {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		OwnedBy string `json:"owned_by"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list", Data: []model{}}
	for _, s := range services {
		for _, m := range s.Spec.Models {
			if !strings.HasSuffix(m, "*") {
				list.Data = append(list.Data, model{m, "model", string(s.Metadata.Name)})
			}
		}
	}
	body, err := json.Marshal(list)
	if err != nil { // strings always marshal
		body = fmt.Appendf(nil, `{"object":"list","data":[]}`)
	}
	return &route.Route{Name: "models", Match: anyPath(), Action: &route.Route_DirectResponse{DirectResponse: &route.DirectResponseAction{
		Status: 200, Body: &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: string(body)}}}},
		ResponseHeadersToAdd: []*core.HeaderValueOption{setHeader("content-type", "application/json")}}
}
