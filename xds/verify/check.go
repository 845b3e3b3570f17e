package verify

import (
	"fmt"
	"slices"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// mostViolations bounds a report: the first few tell what is wrong.
const mostViolations = 50

// Check gives what is wrong with a snapshot in a world, at most the first fifty, sorted; none means that it may be
// published. Resources that by themselves are not right, or not understood, are reported first and alone: what a request
// could do with them is not certain.
func Check(w *world.World, s *xds.Snapshot) []Violation {
	var c Checker
	return c.Check(w, s)
}

// walk is one check under way.
type walk struct {
	viewpoint world.ViewpointID
	here      policies.ClusterName
	whom      world.Tenants     // the proxies may serve
	tenants   []policies.Tenant // the same as a list; nil is everybody
	grpc      bool              // the proxies are gRPC clients without a proxy
	set       *policies.Set
	gateway   *policies.Gateway
	rules     *rulebook
	atlas     *atlas
	tcp       map[policies.ServiceName]bool
	config    *config
	admitted  map[admissionKey][]admission

	reached    map[entry]*reached
	routings   map[*route.RouteConfiguration]*routing
	inner      map[string][]*routing
	seen       map[string]bool
	violations []Violation
}

// locateViewpoint says where the proxies are and which Gateway they follow; false where the world does not say.
func (k *walk) locateViewpoint() bool {
	v, err := world.ParseViewpoint(k.viewpoint)
	if err != nil {
		k.notAnalysable("", "%s", err)
		return false
	}
	gateway, ok := k.set.GatewayFor(v.Role, v.Region, v.Cluster)
	if !ok {
		k.notAnalysable("", "no Gateway selects this viewpoint")
		return false
	}
	k.here, k.gateway, k.grpc, k.whom = v.Cluster, gateway, v.Dialect == world.DialectGRPC, v.Tenants
	k.tenants = v.Tenants.List()
	return true
}

// report notes a violation once. The request in its detail is an example: the same way to the same place is the same.
func (k *walk) report(v Violation) {
	v.Viewpoint = k.viewpoint
	once := fmt.Sprint(v.Code, v.Resource, v.Route, v.Cluster, v.Address, v.Policies)
	if v.Code == NotAnalysable || v.Code == Invalid || v.Code == Dangling {
		once += v.Detail
	}
	if k.seen[once] || len(k.violations) >= mostViolations {
		return
	}
	k.seen[once] = true
	k.violations = append(k.violations, v)
}

func (k *walk) notAnalysable(resource, format string, args ...any) {
	k.report(Violation{Code: NotAnalysable, Resource: resource, Detail: fmt.Sprintf(format, args...)})
}

func (k *walk) sorted() []Violation {
	slices.SortFunc(k.violations, Violation.compare)
	return k.violations
}
