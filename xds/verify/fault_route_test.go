package verify

import (
	match "github.com/cncf/xds/go/xds/type/matcher/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	headermutation "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/meridian-mesh/meridian/xds"
)

func routeFaults(m mesh) map[string]faulty {
	return map[string]faulty{
		"route to another class": {m.routes(func(r *route.Route) {
			if r.Name == "llama/eu-people" {
				r.RequestHeadersToAdd = says("llama", "eu-people")
				r.GetRoute().ClusterSpecifier = &route.RouteAction_Cluster{Cluster: classAny}
			}
		}), []Code{OutsideBoundary, WrongClass}},
		"weighted cluster that leaks": {m.routes(func(r *route.Route) {
			if r.Name == "llama/eu-people" {
				r.RequestHeadersToAdd = says("llama", "eu-people")
				r.GetRoute().ClusterSpecifier = &route.RouteAction_WeightedClusters{WeightedClusters: &route.WeightedCluster{Clusters: []*route.WeightedCluster_ClusterWeight{
					{Name: classEU, Weight: wrapperspb.UInt32(99)}, {Name: classAny, Weight: wrapperspb.UInt32(1)}}}}
			}
		}), []Code{OutsideBoundary, WrongClass}},
		"mirror abroad": {m.routes(func(r *route.Route) {
			if r.Name == "features/eu-people" {
				r.GetRoute().RequestMirrorPolicies = []*route.RouteAction_RequestMirrorPolicy{{Cluster: classAny}}
			}
		}), []Code{OutsideBoundary, WrongClass}},
		"cluster chosen by a header": {m.routes(func(r *route.Route) {
			r.GetRoute().ClusterSpecifier = &route.RouteAction_ClusterHeader{ClusterHeader: "x"}
		}), []Code{NotAnalysable}},
		"redirect":                    {m.routes(func(r *route.Route) { r.Action = &route.Route_Redirect{Redirect: &route.RedirectAction{}} }), []Code{NotAnalysable}},
		"internal redirects followed": {m.routes(func(r *route.Route) { r.GetRoute().InternalRedirectPolicy = &route.InternalRedirectPolicy{} }), []Code{NotAnalysable}},
		"route that switches the strip off": {m.routes(func(r *route.Route) {
			r.TypedPerFilterConfig = map[string]*anypb.Any{"meridian.strip": pack(&headermutation.HeaderMutationPerRoute{})}
		}), []Code{NotAnalysable}},
		"class header of another class": {m.routes(func(r *route.Route) {
			if r.Name == "features/eu-people" {
				for _, h := range r.RequestHeadersToAdd {
					if h.Header.Key == xds.HeaderClass {
						h.Header.Value = "any"
					}
				}
			}
		}), []Code{WrongClass}},
		"default that leads out": {m.rds(edgeName, func(c *route.RouteConfiguration) {
			for _, v := range c.VirtualHosts {
				v.Matcher.OnNoMatch = &match.Matcher_OnMatch{OnMatch: &match.Matcher_OnMatch_Action{Action: action(classAny)}}
			}
		}), []Code{LocationUnknown, OutsideBoundary, WrongClass, WrongService}},
		"route list instead of a tree": {m.rds(edgeName, func(c *route.RouteConfiguration) {
			c.VirtualHosts[0].Matcher = nil
			c.VirtualHosts[0].Routes = []*route.Route{{Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: "/"}},
				Action: &route.Route_Route{Route: &route.RouteAction{ClusterSpecifier: &route.RouteAction_Cluster{Cluster: classAny}}}}}
		}), []Code{LocationUnknown, OutsideBoundary, WrongClass, WrongService}},
		"virtual hosts from elsewhere": {m.rds(edgeName, func(c *route.RouteConfiguration) {
			c.Vhds = &route.Vhds{ConfigSource: &core.ConfigSource{ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}}}}
		}), []Code{NotAnalysable}},
		"routes missing": {without(m.frankfurt, xds.TypeRoute, edgeName), []Code{Dangling}},

		"mirror chosen by a header": {m.route("features/any", func(r *route.Route) {
			r.GetRoute().RequestMirrorPolicies = []*route.RouteAction_RequestMirrorPolicy{{ClusterHeader: "x"}}
		}), []Code{NotAnalysable}},
		"host rewritten": {m.route("features/any", func(r *route.Route) {
			r.GetRoute().HostRewriteSpecifier = &route.RouteAction_HostRewriteLiteral{HostRewriteLiteral: "example.org"}
		}), []Code{NotAnalysable}},
		"hedged requests": {m.route("features/any", func(r *route.Route) { r.GetRoute().HedgePolicy = &route.HedgePolicy{HedgeOnPerTryTimeout: true} }), []Code{NotAnalysable}},
		"upgrade to a tunnel": {m.route("features/any", func(r *route.Route) {
			r.GetRoute().UpgradeConfigs = []*route.RouteAction_UpgradeConfig{{UpgradeType: "CONNECT", ConnectConfig: &route.RouteAction_UpgradeConfig_ConnectConfig{}}}
		}), []Code{NotAnalysable}},
		"cluster specifier plugin": {m.route("features/any", func(r *route.Route) {
			r.GetRoute().ClusterSpecifier = &route.RouteAction_ClusterSpecifierPlugin{ClusterSpecifierPlugin: "x"}
		}), []Code{NotAnalysable}},
		"class header from the client": {m.route("features/any", func(r *route.Route) { r.RequestHeadersToAdd = says("features", "%REQ(x)%") }), []Code{NotAnalysable}},
		"class header removed again": {m.route("llama/eu-people", func(r *route.Route) {
			r.RequestHeadersToRemove = append(r.RequestHeadersToRemove, xds.HeaderClass)
		}), []Code{WrongClass}},
		"class header added to what is there": {m.route("features/any", func(r *route.Route) {
			for _, h := range r.RequestHeadersToAdd {
				h.AppendAction = core.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
			}
		}), []Code{NotAnalysable}},
		"headers of another service": {m.route("features/eu-people", func(r *route.Route) { r.RequestHeadersToAdd = says("llama", "eu-people") }), []Code{WrongClass}},
		"model of another service": {m.route("llama-next/any", func(r *route.Route) {
			r.RequestHeadersToAdd = says("features", "any")
			r.GetRoute().ClusterSpecifier = &route.RouteAction_Cluster{Cluster: "class/features/any"}
		}), []Code{WrongService}},
		"weighted cluster without weight": {m.route("llama/any", func(r *route.Route) {
			r.GetRoute().GetWeightedClusters().Clusters[0].Weight = wrapperspb.UInt32(0)
		}), []Code{NotAnalysable}},
		"virtual host that sets headers": {m.rds(edgeName, func(c *route.RouteConfiguration) { c.VirtualHosts[0].RequestHeadersToAdd = says("llama", "any") }), []Code{NotAnalysable}},
		"virtual host that mirrors": {m.rds(edgeName, func(c *route.RouteConfiguration) {
			c.VirtualHosts[0].RequestMirrorPolicies = []*route.RouteAction_RequestMirrorPolicy{{Cluster: classAny}}
		}), []Code{NotAnalysable}},
		"virtual host that switches the strip off": {m.rds(edgeName, func(c *route.RouteConfiguration) {
			c.VirtualHosts[0].TypedPerFilterConfig = map[string]*anypb.Any{"meridian.strip": pack(&headermutation.HeaderMutationPerRoute{})}
		}), []Code{NotAnalysable}},
		"route to a cluster that is not there": {m.route("features/any", func(r *route.Route) {
			r.GetRoute().ClusterSpecifier = &route.RouteAction_Cluster{Cluster: "class/features/nothing"}
		}), []Code{Dangling, WrongClass}},
	}
}
