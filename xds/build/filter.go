package build

import (
	"strconv"

	match "github.com/cncf/xds/go/xds/type/matcher/v3"
	mutation "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	matching "github.com/envoyproxy/go-control-plane/envoy/extensions/common/matching/v3"
	buffer "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	composite "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/composite/v3"
	extauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	geoip "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/geoip/v3"
	headermutation "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	headermetadata "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"
	jsonmetadata "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/json_to_metadata/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	stringmatch "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/xds"
)

// httpFilters are what a client's request passes before it is routed, in order: forged headers go first, since all that
// follows trusts the headers that it sets itself.
func (b *builder) httpFilters(c *collector, openAI bool) []*hcm.HttpFilter {
	filters := []*hcm.HttpFilter{b.stripForged(c)}
	filters = append(filters, b.locate(c)...)
	if openAI {
		filters = append(filters, b.bufferBody(c), readModel(c), modelToHeader(c))
	}
	filters = append(filters, b.groupFilters(c)...)
	return append(filters, b.rerouted(c), httpFilter(c, "envoy.filters.http.router", &router.Router{SuppressEnvoyHeaders: true}))
}

func httpFilter(c *collector, name string, config proto.Message) *hcm.HttpFilter {
	return &hcm.HttpFilter{Name: name, ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: c.any(config)}}
}

// stripForged removes every header that only Meridian may set.
func (b *builder) stripForged(c *collector) *hcm.HttpFilter {
	remove := &mutation.HeaderMutation{Action: &mutation.HeaderMutation_RemoveOnMatch_{RemoveOnMatch: &mutation.HeaderMutation_RemoveOnMatch{
		KeyMatcher: &stringmatch.StringMatcher{IgnoreCase: true, MatchPattern: &stringmatch.StringMatcher_Prefix{Prefix: xds.HeaderPrefix}}}}}
	return httpFilter(c, "meridian.strip", mutations(remove))
}

func mutations(request ...*mutation.HeaderMutation) *headermutation.HeaderMutation {
	return &headermutation.HeaderMutation{Mutations: &headermutation.Mutations{RequestMutations: request}}
}

func appendHeader(key, value string) *mutation.HeaderMutation {
	return &mutation.HeaderMutation{Action: &mutation.HeaderMutation_Append{Append: setHeader(key, value)}}
}

// locate sets the country header from the client's address. An address that is in no database leaves it absent.
func (b *builder) locate(c *collector) []*hcm.HttpFilter {
	switch l := b.gateway.Spec.Location; l.Source {
	case policies.LocationGeoIP:
		provider := extension("envoy.geoip_providers.maxmind", c.any(b.geoProvider(l.Database)))
		return []*hcm.HttpFilter{httpFilter(c, "envoy.filters.http.geoip", &geoip.Geoip{Provider: provider})}
	case policies.LocationGeoService:
		// Where the service can't be asked the location is unknown, and what that means is for the rules to say.
		return []*hcm.HttpFilter{httpFilter(c, "envoy.filters.http.ext_authz", &extauthz.ExtAuthz{
			TransportApiVersion: core.ApiVersion_V3, FailureModeAllow: true,
			Services: &extauthz.ExtAuthz_GrpcService{GrpcService: &core.GrpcService{Timeout: duration(geoServiceTimeout),
				InitialMetadata: []*core.HeaderValue{{Key: "meridian-trusted-hops", Value: strconv.Itoa(b.gateway.Spec.TrustedHops)}},
				TargetSpecifier: &core.GrpcService_EnvoyGrpc_{EnvoyGrpc: &core.GrpcService_EnvoyGrpc{ClusterName: xds.GeoServiceCluster}}}},
		})}
	}
	return nil
}

// bufferBody waits for the whole body, since the model is in it, and refuses one that is too large with 413. Routes of
// services that don't name a model in the body switch it off.
func (b *builder) bufferBody(c *collector) *hcm.HttpFilter {
	return httpFilter(c, "envoy.filters.http.buffer", &buffer.Buffer{MaxRequestBytes: uint32Value(uint32(b.gateway.Spec.MaxBodyBytes))})
}

// readModel reads the model from an OpenAI body into dynamic metadata.
func readModel(c *collector) *hcm.HttpFilter {
	model := &jsonmetadata.JsonToMetadata_KeyValuePair{MetadataNamespace: xds.MetadataNamespace, Key: "model"}
	failed := func(why string) *jsonmetadata.JsonToMetadata_KeyValuePair {
		return &jsonmetadata.JsonToMetadata_KeyValuePair{MetadataNamespace: xds.MetadataNamespace, Key: "model_status",
			ValueType: &jsonmetadata.JsonToMetadata_KeyValuePair_Value{Value: structpb.NewStringValue(why)}}
	}
	return httpFilter(c, "envoy.filters.http.json_to_metadata", &jsonmetadata.JsonToMetadata{RequestRules: &jsonmetadata.JsonToMetadata_MatchRules{
		Rules: []*jsonmetadata.JsonToMetadata_Rule{{
			Selectors: []*jsonmetadata.JsonToMetadata_Selector{{Selector: &jsonmetadata.JsonToMetadata_Selector_Key{Key: "model"}}},
			OnPresent: model, OnMissing: failed("missing"), OnError: failed("malformed"),
		}},
		AllowEmptyContentType:  true,
		AllowContentTypesRegex: &stringmatch.RegexMatcher{Regex: `(?i)application/([a-z.+-]+\+)?json\s*(;.*)?`},
	}})
}

// modelToHeader copies the model where routes can match it. Without one the header stays absent.
func modelToHeader(c *collector) *hcm.HttpFilter {
	return httpFilter(c, "meridian.model", mutations(appendHeader(xds.HeaderModel, "%DYNAMIC_METADATA("+xds.MetadataNamespace+":model)%")))
}

// groupFilters map country, tenant and label to the groups of the plan's admission. A dimension in which no rule tells
// values apart needs none.
func (b *builder) groupFilters(c *collector) []*hcm.HttpFilter {
	var filters []*hcm.HttpFilter
	for _, d := range b.dims {
		if len(d.groups) > 0 && d.header != "" {
			filters = append(filters, d.filter(c))
		}
	}
	return filters
}

// filter is a table from the values of a header to groups, as data: a composite filter that executes, for each value, a
// mutation that sets the group's header.
func (d dimension) filter(c *collector) *hcm.HttpFilter {
	table := map[string]*match.Matcher_OnMatch{}
	for value, group := range d.groups {
		table[value] = d.set(c, group)
	}
	tree := onHeader(c, d.header, table, d.set(c, d.absent))
	if d.other != d.absent {
		tree = ifHeader(c, d.header, ".+", nest(onHeader(c, d.header, table, d.set(c, d.other))), d.set(c, d.absent))
	}
	return httpFilter(c, "meridian."+d.name, &matching.ExtensionWithMatcher{
		ExtensionConfig: extension("envoy.filters.http.composite", c.any(&composite.Composite{})),
		XdsMatcher:      tree,
	})
}

func (d dimension) set(c *collector, group string) *match.Matcher_OnMatch {
	return then(c, group, &composite.ExecuteFilterAction{
		TypedConfig: extension("envoy.filters.http.header_mutation", c.any(mutations(appendHeader(d.groupHeader, group)))),
	})
}

// rememberPinned keeps, beside the headers, that a request is pinned: an answer of Envoy's own may come after the headers
// were stripped for a server.
func rememberPinned(c *collector) *hcm.HttpFilter {
	return httpFilter(c, "envoy.filters.http.header_to_metadata", &headermetadata.Config{RequestRules: []*headermetadata.Config_Rule{{
		Header: xds.HeaderPinned, OnHeaderPresent: &headermetadata.Config_KeyValuePair{MetadataNamespace: xds.MetadataNamespace, Key: "pinned"},
	}}})
}
