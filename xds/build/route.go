package build

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	match "github.com/cncf/xds/go/xds/type/matcher/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	buffer "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	previoushosts "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	previouspriorities "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

func anyPath() *route.RouteMatch {
	return &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: "/"}}
}

// admit is where a request for a service goes on: by the groups it is in, to its class or to a refusal.
func (b *builder) admit(c *collector, s *policies.Service) *match.Matcher_OnMatch {
	return b.branch(c, s, b.plan.Admission.OutcomesOf(s.Metadata.Name), b.dims[:])
}

// branch splits outcomes by one dimension after the other, and ends as soon as they are all the same.
func (b *builder) branch(c *collector, s *policies.Service, outcomes []plan.Outcome, dims []dimension) *match.Matcher_OnMatch {
	if len(outcomes) == 0 { // a group that no request can be in; refuse what should not exist
		return then(c, "none", unsatisfiable.route())
	}
	if len(dims) == 0 || allSame(outcomes) {
		r := b.outcomeRoute(c, s, outcomes[0])
		return then(c, r.Name, r)
	}
	table := map[string]*match.Matcher_OnMatch{}
	for _, group := range groupsOf(outcomes, dims[0]) {
		same := slices.DeleteFunc(slices.Clone(outcomes), func(o plan.Outcome) bool { return dims[0].of(o) != group })
		table[string(group)] = b.branch(c, s, same, dims[1:])
	}
	if len(table) == 1 {
		return table[string(dims[0].of(outcomes[0]))]
	}
	// A request without a group was not admitted: fail closed.
	return nest(onHeader(c, dims[0].groupHeader, table, then(c, "none", unsatisfiable.route())))
}

func allSame(outcomes []plan.Outcome) bool {
	return !slices.ContainsFunc(outcomes, func(o plan.Outcome) bool {
		return o.Class != outcomes[0].Class || (o.Refusal == nil) != (outcomes[0].Refusal == nil) ||
			(o.Refusal != nil && (o.Refusal.Code != outcomes[0].Refusal.Code || !slices.Equal(o.Refusal.Policies, outcomes[0].Refusal.Policies)))
	})
}

// groupsOf are the groups that outcomes have in a dimension, sorted, each once.
func groupsOf(outcomes []plan.Outcome, d dimension) []plan.Group {
	var groups []plan.Group
	for _, o := range outcomes {
		groups = append(groups, d.of(o))
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// outcomeRoute is the route of a class, or the refusal.
func (b *builder) outcomeRoute(c *collector, s *policies.Service, o plan.Outcome) *route.Route {
	if o.Refusal != nil {
		return refusal(o.Refusal).route()
	}
	return b.classRoute(c, s, o)
}

// refusal is what a client is told about a request that no cluster may serve. It names the policies that decided.
func refusal(r *plan.Reason) failure {
	names := make([]string, len(r.Policies))
	for i, p := range r.Policies {
		names[i] = string(p)
	}
	policies := strings.Join(names, ", ")
	if r.Code == plan.UnknownLocation {
		return unknownLocation.because("Policies: " + policies + ".")
	}
	return unsatisfiable.because("These policies have no region in common: " + policies + ".")
}

// classRoute sends a request to its class cluster, or by the Traffic policy's splits to those of several services.
func (b *builder) classRoute(c *collector, s *policies.Service, o plan.Outcome) *route.Route {
	traffic := b.set.TrafficFor(s.Metadata.Name)
	action := &route.RouteAction{
		Timeout:     duration(0),
		IdleTimeout: duration(traffic.IdleTimeout.Std()),
		RetryPolicy: betweenClusters(c, s.Spec.Protocol, min(*traffic.Retries.Attempts, b.others(s.Metadata.Name, o.Class))),
	}
	name := string(s.Metadata.Name) + "/" + string(o.Class)
	r := &route.Route{
		Name: name, Match: anyPath(), Action: &route.Route_Route{Route: action},
		RequestHeadersToRemove: []string{xds.HeaderCountry, xds.HeaderModel, xds.HeaderCountryGroup, xds.HeaderTenantGroup, xds.HeaderLabelGroup},
	}
	if o.Class.Pinned() {
		r.RequestHeadersToAdd = append(r.RequestHeadersToAdd, setHeader(xds.HeaderPinned, "true"))
	}
	if s.Spec.Protocol != policies.ProtocolOpenAI {
		r.TypedPerFilterConfig = map[string]*anypb.Any{"envoy.filters.http.buffer": c.any(&buffer.BufferPerRoute{Override: &buffer.BufferPerRoute_Disabled{Disabled: true}})}
	}
	b.responseHeaders(r)
	if len(traffic.Splits) == 0 {
		action.ClusterSpecifier = &route.RouteAction_Cluster{Cluster: xds.ClassCluster(s.Metadata.Name, o.Class)}
		r.RequestHeadersToAdd = append(r.RequestHeadersToAdd, classHeaders(s.Metadata.Name, o)...)
		return r
	}
	action.ClusterSpecifier = &route.RouteAction_WeightedClusters{WeightedClusters: b.split(o, traffic.Splits)}
	return r
}

// split divides requests by percentage. A request that is split keeps its groups, so each service is entered with the
// class that it has for it; a share of a service that must refuse it stays.
func (b *builder) split(o plan.Outcome, splits []policies.Split) *route.WeightedCluster {
	weights := &route.WeightedCluster{}
	rest := 100
	for _, split := range splits {
		to, ok := b.sameGroups(split.Service, o)
		if !ok {
			continue
		}
		rest -= split.Percent
		weights.Clusters = append(weights.Clusters, weighted(to, split.Percent))
	}
	if rest > 0 {
		weights.Clusters = append(weights.Clusters, weighted(o, rest))
	}
	return weights
}

func weighted(o plan.Outcome, percent int) *route.WeightedCluster_ClusterWeight {
	return &route.WeightedCluster_ClusterWeight{Name: xds.ClassCluster(o.Service, o.Class), Weight: uint32Value(uint32(percent)), RequestHeadersToAdd: classHeaders(o.Service, o)}
}

// sameGroups is the outcome for another service of a request in the same groups; ok is false where it is refused there.
func (b *builder) sameGroups(service policies.ServiceName, o plan.Outcome) (plan.Outcome, bool) {
	for _, other := range b.plan.Admission.OutcomesOf(service) {
		if other.Country == o.Country && other.Tenant == o.Tenant && other.Label == o.Label {
			return other, other.Refusal == nil
		}
	}
	return plan.Outcome{}, false
}

// classHeaders tell the inner hop, and the next gateway, what is asked for.
func classHeaders(service policies.ServiceName, o plan.Outcome) []*core.HeaderValueOption {
	return []*core.HeaderValueOption{setHeader(xds.HeaderService, string(service)), setHeader(xds.HeaderClass, string(o.Class))}
}

// responseHeaders say which cluster served and why, from the metadata of the endpoint that was chosen. What a server
// claims of itself is overwritten or removed.
func (b *builder) responseHeaders(r *route.Route) {
	for header, key := range map[string]string{xds.HeaderCluster: "cluster", xds.HeaderRegion: "region", xds.HeaderReason: "reason"} {
		if !*b.gateway.Spec.ResponseHeaders {
			r.ResponseHeadersToRemove = append(r.ResponseHeadersToRemove, header)
			continue
		}
		r.ResponseHeadersToAdd = append(r.ResponseHeadersToAdd, setHeader(header, fmt.Sprintf("%%UPSTREAM_METADATA(%s:%s)%%", xds.MetadataNamespace, key)))
	}
	slices.Sort(r.ResponseHeadersToRemove)
	slices.SortFunc(r.ResponseHeadersToAdd, func(x, y *core.HeaderValueOption) int { return cmp.Compare(x.Header.Key, y.Header.Key) })
}

// others is how many further attempts can find another cluster: one for each that may serve a class from here, since one
// of several at priority 0 stands below once more. Envoy would start over at the first after that.
func (b *builder) others(service policies.ServiceName, class world.ClassID) int {
	d, ok := b.plan.Find(b.viewpoint.ID(), service, class)
	if !ok {
		return 0
	}
	permitted := 0
	for _, choice := range d.Choices {
		if choice.Role != plan.Refused {
			permitted++
		}
	}
	if permitted < 2 {
		return 0
	}
	return permitted
}

// betweenClusters retries at the next priority: another cluster, never the same. Only before the first byte of a response.
// To gRPC, Envoy says in a status of gRPC's own what it says to HTTP by 429 and 503.
func betweenClusters(c *collector, protocol policies.Protocol, attempts int) *route.RetryPolicy {
	policy := retryPolicy(c, attempts, 429, 503)
	if protocol == policies.ProtocolGRPC {
		policy.RetryOn += ",unavailable"
	}
	policy.RetryPriority = &route.RetryPolicy_RetryPriority{Name: "envoy.retry_priorities.previous_priorities", ConfigType: &route.RetryPolicy_RetryPriority_TypedConfig{
		TypedConfig: c.any(&previouspriorities.PreviousPrioritiesConfig{UpdateFrequency: 1})}}
	return policy
}

// withinPool retries at another server of the same pool, once.
func withinPool(c *collector) *route.RetryPolicy { return retryPolicy(c, 1, 503) }

func retryPolicy(c *collector, attempts int, statuses ...uint32) *route.RetryPolicy {
	return &route.RetryPolicy{
		RetryOn:              "connect-failure,refused-stream,reset,retriable-status-codes",
		RetriableStatusCodes: statuses,
		NumRetries:           uint32Value(uint32(attempts)),
		RetryBackOff:         &route.RetryPolicy_RetryBackOff{BaseInterval: duration(retryBase), MaxInterval: duration(retryMost)},
		RetryHostPredicate: []*route.RetryPolicy_RetryHostPredicate{{Name: "envoy.retry_host_predicates.previous_hosts", ConfigType: &route.RetryPolicy_RetryHostPredicate_TypedConfig{
			TypedConfig: c.any(&previoushosts.PreviousHostsPredicate{})}}},
		HostSelectionRetryMaxAttempts: 5,
	}
}
