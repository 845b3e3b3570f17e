package verify

import (
	"slices"

	xdscore "github.com/cncf/xds/go/xds/core/v3"
	match "github.com/cncf/xds/go/xds/type/matcher/v3"
	accesslog "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	mutation "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	setstate "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	composite "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/composite/v3"
	forwardproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/dynamic_forward_proxy/v3"
	extauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	geoip "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/geoip/v3"
	headermutation "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	lua "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	filterstate "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_filter_state/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	geocommon "github.com/envoyproxy/go-control-plane/envoy/extensions/geoip_providers/common/v3"
	maxmind "github.com/envoyproxy/go-control-plane/envoy/extensions/geoip_providers/maxmind/v3"
	stringmatch "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/meridian-mesh/meridian/xds"
)

func filterFaults(m mesh) map[string]faulty {
	strip, located, state := &headermutation.HeaderMutation{}, &geoip.Geoip{}, &filterstate.Config{}
	return map[string]faulty{
		"strip missing": {m.http(func(h *hcm.HttpConnectionManager) { h.HttpFilters = h.HttpFilters[1:] }), []Code{ForgedHeaders}},
		"strip after geoip": {m.http(func(h *hcm.HttpConnectionManager) {
			h.HttpFilters[0], h.HttpFilters[1] = h.HttpFilters[1], h.HttpFilters[0]
		}), []Code{ForgedHeaders}},
		"Lua": {m.http(func(h *hcm.HttpConnectionManager) {
			h.HttpFilters = append([]*hcm.HttpFilter{h.HttpFilters[0], {Name: "lua", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&lua.Lua{})}}}, h.HttpFilters[1:]...)
		}), []Code{NotAnalysable}},
		"Lua that is not ours": {m.http(func(h *hcm.HttpConnectionManager) {
			h.HttpFilters = slices.DeleteFunc(h.HttpFilters, func(f *hcm.HttpFilter) bool { return f.Name == "envoy.filters.http.set_filter_state" })
			h.HttpFilters = slices.Insert(h.HttpFilters, len(h.HttpFilters)-1, &hcm.HttpFilter{Name: "lua", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&lua.Lua{
				DefaultSourceCode: &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: xds.LuaClearRoute + "--"}}})}})
		}), []Code{NotAnalysable}},
		"filter switched off":        {m.http(func(h *hcm.HttpConnectionManager) { h.HttpFilters[0].Disabled = true }), []Code{NotAnalysable}},
		"country in the wrong group": {m.tables("meridian.country", func(x *match.Matcher) { exact(x)["DE"] = other(x) }), []Code{OutsideBoundary, WrongClass}},
		"country missing":            {m.tables("meridian.country", func(x *match.Matcher) { delete(exact(x), "FR") }), []Code{OutsideBoundary, WrongClass}},
		"unknown location let in":    {m.tables("meridian.country", func(x *match.Matcher) { x.OnNoMatch = other(x) }), []Code{LocationUnknown}},
		"tenant in the wrong group":  {m.tables("meridian.tenant", func(x *match.Matcher) { exact(x)["acme"] = x.OnNoMatch }), []Code{OutsideBoundary, WrongClass}},
		"label in the wrong group":   {m.tables("meridian.label", func(x *match.Matcher) { exact(x)["export-controlled"] = x.OnNoMatch }), []Code{OutsideBoundary, WrongClass}},
		"table that runs another filter": {m.tables("meridian.country", func(x *match.Matcher) {
			exact(x)["DE"] = &match.Matcher_OnMatch{OnMatch: &match.Matcher_OnMatch_Action{Action: &xdscore.TypedExtensionConfig{Name: "x", TypedConfig: pack(&composite.ExecuteFilterAction{
				TypedConfig: &core.TypedExtensionConfig{Name: "x", TypedConfig: pack(&lua.Lua{})}})}}}
		}), []Code{NotAnalysable}},

		"strip of too little": {m.filter("meridian.strip", strip, func() {
			strip.Mutations.RequestMutations[0].GetRemoveOnMatch().KeyMatcher.MatchPattern = &stringmatch.StringMatcher_Prefix{Prefix: "x-meridian-country"}
		}), []Code{ForgedHeaders}},
		"route kept from before": {m.http(func(h *hcm.HttpConnectionManager) {
			h.HttpFilters = slices.DeleteFunc(h.HttpFilters, func(f *hcm.HttpFilter) bool { return f.Name == "envoy.filters.http.set_filter_state" })
		}), []Code{StaleRoute}},
		"headers set after the route is chosen": {m.http(func(h *hcm.HttpConnectionManager) {
			last := len(h.HttpFilters) - 1
			h.HttpFilters = slices.Insert(h.HttpFilters, last, setsHeader(xds.HeaderCountryGroup, "x"))
		}), []Code{StaleRoute}},
		"state that chooses the cluster": {m.filter("envoy.filters.http.set_filter_state", state, func() {
			state.OnRequestHeaders[0].Key = &setstate.FilterStateValue_ObjectKey{ObjectKey: "envoy.tcp_proxy.cluster"}
		}), []Code{NotAnalysable}},
		"country that the client says": {m.http(func(h *hcm.HttpConnectionManager) {
			h.HttpFilters = slices.Insert(h.HttpFilters, 2, setsHeader(xds.HeaderCountry, "%REQ(x-country)%"))
		}), []Code{NotAnalysable}},
		"country set for all": {m.http(func(h *hcm.HttpConnectionManager) {
			h.HttpFilters = slices.Insert(h.HttpFilters, 2, setsHeader(xds.HeaderCountry, "US"))
		}), []Code{LocationUnknown, OutsideBoundary, WrongClass}},
		"another database": {m.filter("envoy.filters.http.geoip", located, func() {
			located.Provider.TypedConfig = pack(&maxmind.MaxMindConfig{CountryDbPath: "/tmp/other.mmdb", CommonProviderConfig: &geocommon.CommonGeoipProviderConfig{
				GeoFieldKeys: &geocommon.CommonGeoipProviderConfig_GeolocationFieldKeys{Country: xds.HeaderCountry}}})
		}), []Code{WrongLocation}},
		"location by a header": {m.filter("envoy.filters.http.geoip", located, func() {
			located.XffConfig = &geoip.Geoip_XffConfig{XffNumTrustedHops: 5}
		}), []Code{NotAnalysable}},
		"more proxies trusted":   {m.http(func(h *hcm.HttpConnectionManager) { h.XffNumTrustedHops = 2 }), []Code{WrongLocation}},
		"every client trusted":   {m.http(func(h *hcm.HttpConnectionManager) { h.UseRemoteAddress = wrapperspb.Bool(false) }), []Code{WrongLocation}},
		"location by a stranger": {m.http(func(h *hcm.HttpConnectionManager) { h.HttpFilters[1] = asks("gateway/iad-1") }), []Code{WrongLocation}},
		"location by nobody":     {m.http(func(h *hcm.HttpConnectionManager) { h.HttpFilters[1] = asks("nobody") }), []Code{Dangling}},
		"dynamic forward proxy": {m.http(func(h *hcm.HttpConnectionManager) {
			h.HttpFilters = slices.Insert(h.HttpFilters, 1, &hcm.HttpFilter{Name: "x", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&forwardproxy.FilterConfig{
				ImplementationSpecifier: &forwardproxy.FilterConfig_SubClusterConfig{SubClusterConfig: &forwardproxy.SubClusterConfig{}}})}})
		}), []Code{NotAnalysable}},
		"filter without a configuration": {m.http(func(h *hcm.HttpConnectionManager) {
			h.HttpFilters = slices.Insert(h.HttpFilters, 1, &hcm.HttpFilter{Name: "envoy.filters.http.lua"})
		}), []Code{NotAnalysable}},
		"requests logged elsewhere": {m.http(func(h *hcm.HttpConnectionManager) {
			h.AccessLog = []*accesslog.AccessLog{{Name: "x", ConfigType: &accesslog.AccessLog_TypedConfig{TypedConfig: pack(&lua.Lua{})}}}
		}), []Code{NotAnalysable}},
		"filters of an upgrade": {m.http(func(h *hcm.HttpConnectionManager) {
			h.UpgradeConfigs = []*hcm.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket", Filters: h.HttpFilters[len(h.HttpFilters)-1:]}}
		}), []Code{NotAnalysable}},
		"redirects that Envoy makes": {m.http(func(h *hcm.HttpConnectionManager) {
			h.PathWithEscapedSlashesAction, h.TypedHeaderValidationConfig = 0, &core.TypedExtensionConfig{Name: "x", TypedConfig: pack(&lua.Lua{})}
		}), []Code{NotAnalysable}},
		"countries told apart by prefix": {m.tables("meridian.country", func(x *match.Matcher) {
			inner := x.GetMatcherList().GetMatchers()[0].GetOnMatch().GetMatcher().GetMatcherTree()
			inner.TreeType = &match.Matcher_MatcherTree_PrefixMatchMap{PrefixMatchMap: inner.GetExactMatchMap()}
		}), []Code{NotAnalysable}},
	}
}

// setsHeader is a filter that overwrites a request header.
func setsHeader(name, value string) *hcm.HttpFilter {
	return &hcm.HttpFilter{Name: "sets", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&headermutation.HeaderMutation{Mutations: &headermutation.Mutations{
		RequestMutations: []*mutation.HeaderMutation{{Action: &mutation.HeaderMutation_Append{Append: &core.HeaderValueOption{
			Header: &core.HeaderValue{Key: name, Value: value}, AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD}}}}}})}}
}

// asks is a filter that asks a cluster where the client is.
func asks(cluster string) *hcm.HttpFilter {
	return &hcm.HttpFilter{Name: "asks", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&extauthz.ExtAuthz{Services: &extauthz.ExtAuthz_GrpcService{
		GrpcService: &core.GrpcService{InitialMetadata: []*core.HeaderValue{{Key: trustedHops, Value: "1"}},
			TargetSpecifier: &core.GrpcService_EnvoyGrpc_{EnvoyGrpc: &core.GrpcService_EnvoyGrpc{ClusterName: cluster}}}}})}}
}
