package verify

import (
	"slices"
	"strings"
	"testing"

	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/xds"
)

// Faults in what a gRPC client is given that routes by itself.
func TestFaultsOfProxylessClientsAreFound(t *testing.T) {
	w, snapshots := load(t, "testdata/proxyless.yaml")
	s := snapshotOf(t, snapshots, "gateway/virginia/iad-1/grpc")
	routes := func(fault func(*route.VirtualHost)) *xds.Snapshot {
		return change(t, s, xds.TypeRoute, "features", func(c *route.RouteConfiguration) { fault(c.VirtualHosts[0]) })
	}
	named := func(v *route.VirtualHost, name string) *route.Route {
		i := slices.IndexFunc(v.Routes, func(r *route.Route) bool { return r.Name == name })
		if i < 0 {
			t.Fatalf("no route %s", name)
		}
		return v.Routes[i]
	}
	drop := func(v *route.VirtualHost, prefix string) {
		v.Routes = slices.DeleteFunc(v.Routes, func(r *route.Route) bool { return strings.HasPrefix(r.Name, prefix) })
	}
	anywhere := &endpoint.ClusterLoadAssignment{}
	for name, c := range map[string]struct {
		snapshot *xds.Snapshot
		want     []Code
	}{
		"nothing wrong": {s, nil},
		"a label's route leads to every cluster": {routes(func(v *route.VirtualHost) {
			named(v, "features/health-data").GetRoute().ClusterSpecifier = &route.RouteAction_Cluster{Cluster: xds.ClassCluster("features", "any")}
		}), []Code{OutsideBoundary, WrongClass}},
		"a label's route is missing":          {routes(func(v *route.VirtualHost) { drop(v, "features/health-data") }), []Code{OutsideBoundary, WrongClass}},
		"labels that come twice are let pass": {routes(func(v *route.VirtualHost) { drop(v, "several-labels") }), []Code{OutsideBoundary, WrongClass}},
		"the route for the rest comes first":  {routes(func(v *route.VirtualHost) { slices.Reverse(v.Routes[:len(v.Routes)-1]) }), []Code{OutsideBoundary, WrongClass}},
		"a route that says another class":     {routes(func(v *route.VirtualHost) { named(v, "features/any").RequestHeadersToAdd = nil }), []Code{WrongClass, WrongService}},
		"a match that is not by value": {routes(func(v *route.VirtualHost) {
			v.Routes[0].Match.Headers[0].GetStringMatch().IgnoreCase = true
			v.Routes[0].Match.Headers[0].InvertMatch = true
		}), []Code{NotAnalysable}},
		"another route for each method":          {routes(func(v *route.VirtualHost) { v.Routes[0].Match.PathSpecifier = &route.RouteMatch_Path{Path: "/x"} }), []Code{NotAnalysable}},
		"a virtual host for one authority":       {routes(func(v *route.VirtualHost) { v.Domains = []string{"features.example"} }), []Code{NotAnalysable}},
		"routes that are not there":              {without(s, xds.TypeRoute, "features"), []Code{Dangling}},
		"configuration that an Envoy would take": {s.For("gateway/virginia/iad-1"), []Code{NotAnalysable}},
		"a listener with filters": {change(t, s, xds.TypeListener, "features", func(l *listener.Listener) { l.FilterChains = []*listener.FilterChain{{}} }),
			[]Code{NotAnalysable}},
		"given to clients of one tenant": {s.For("gateway/virginia/iad-1/grpc@acme"), []Code{ForeignTenant}},
		"a server outside": {change(t, change(t, s, xds.TypeEndpoint, "class/features/any", func(a *endpoint.ClusterLoadAssignment) {
			anywhere.Endpoints = a.Endpoints
			a.Endpoints = nil
		}), xds.TypeEndpoint, "class/features/health-data", func(a *endpoint.ClusterLoadAssignment) { a.Endpoints = anywhere.Endpoints }), []Code{OutsideBoundary}},
	} {
		t.Run(name, func(t *testing.T) {
			violations := Check(w, c.snapshot)
			if diff := cmp.Diff(c.want, codesOf(violations)); diff != "" {
				t.Errorf("kinds of violation (-want +got):\n%s\n%v", diff, violations)
			}
		})
	}
}
