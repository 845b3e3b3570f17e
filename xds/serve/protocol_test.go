package serve

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	statusservice "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
)

// A client that comes back, to any replica, is sent only what it does not hold.
func TestAnotherReplicaSendsNothingThatIsHeld(t *testing.T) {
	one, two := &cache.Cache{}, &cache.Cache{}
	one.Publish(snapshot("C:a=1", "C:b=1", "E:a=1"), time.Now())
	two.Publish(snapshot("C:a=1", "C:b=2", "E:a=1"), time.Now())
	_, ads := running(t, Config{Cache: one})
	before := join(t, ads, "p", "", cds)
	before.gets("C a=1 b=1")
	before.cancel()
	_, other := running(t, Config{Cache: two})
	after := join(t, other, "p", "")
	after.say(&discovery.DeltaDiscoveryRequest{Node: nodeOf("p"), TypeUrl: string(cds), InitialResourceVersions: map[string]string{"a": "1", "b": "1"}})
	after.gets("C b=2")
	after.say(&discovery.DeltaDiscoveryRequest{TypeUrl: string(eds), ResourceNamesSubscribe: []string{"a"}, InitialResourceVersions: map[string]string{"a": "1"}})
	after.say(&discovery.DeltaDiscoveryRequest{TypeUrl: string(eds), ResourceNamesSubscribe: []string{"z"}})
	after.gets("C -z") // of what it asked before, nothing
}

func TestLifetimesAreRenewed(t *testing.T) {
	lasting := xds.Serialised(eds, "a", "1", []byte("1"), xds.WithTTL(90*time.Millisecond))
	c := &cache.Cache{}
	c.Publish(xds.NewSnapshot("gateway/r/c", []*xds.Resource{lasting}), time.Now())
	s, ads := running(t, Config{Cache: c, Patience: 20 * time.Millisecond})
	stream := delta(t, ads, nodeOf("p"))
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: string(eds)}); err != nil {
		t.Fatal(err)
	}
	var nonces []string
	for len(nonces) < 4 {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetTypeUrl() != string(eds) {
			continue
		}
		res := r.GetResources()[0]
		if first := len(nonces) == 0; res.GetTtl().AsDuration() != 90*time.Millisecond || (res.GetResource() != nil) != first {
			t.Errorf("response %d: %v", len(nonces), res)
		}
		nonces = append(nonces, r.GetNonce())
		_ = stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: string(eds), ResponseNonce: r.GetNonce()})
	}
	if slices.Sort(nonces); len(slices.Compact(nonces)) != 4 {
		t.Errorf("nonces %q", nonces)
	}
	wrapped := sotwOf(t, s, &discovery.DiscoveryRequest{Node: &core.Node{Id: "q", Cluster: "c", ClientFeatures: []string{"xds.config.resource-in-sotw"}}, TypeUrl: string(eds), ResourceNames: []string{"a"}})
	var inside discovery.Resource
	if err := wrapped.GetResources()[0].UnmarshalTo(&inside); err != nil || inside.GetTtl() == nil || string(inside.GetResource().GetValue()) != "1" {
		t.Errorf("%v: %v", wrapped, err)
	}
	plain := sotwOf(t, s, &discovery.DiscoveryRequest{Node: nodeOf("r"), TypeUrl: string(eds), ResourceNames: []string{"a"}})
	if got := plain.GetResources()[0]; got.GetTypeUrl() != string(eds) || string(got.GetValue()) != "1" {
		t.Errorf("a client that understands no lifetimes got %v", got)
	}
}

// sotwOf is the first answer to a request under the state of the world.
func sotwOf(t *testing.T, s *Server, request *discovery.DiscoveryRequest) *discovery.DiscoveryResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	stream, err := connection(t, s).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(request); err != nil {
		t.Fatal(err)
	}
	r, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVirtualHostsAreFoundByDomainAndThoseThatAreNotThereAreSaidToBe(t *testing.T) {
	host := xds.Serialised(xds.TypeVirtualHost, "routes/shop", "1", []byte("1"), xds.WithAliases("routes/shop.example"))
	c := &cache.Cache{}
	c.Publish(xds.NewSnapshot("gateway/r/c", []*xds.Resource{host}), time.Now())
	_, ads := running(t, Config{Cache: c})
	stream := delta(t, ads, nodeOf("p"))
	ask := &discovery.DeltaDiscoveryRequest{TypeUrl: string(xds.TypeVirtualHost), ResourceNamesSubscribe: []string{"routes/shop.example", "routes/nowhere.example"}}
	if err := stream.Send(ask); err != nil {
		t.Fatal(err)
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetTypeUrl() != string(xds.TypeVirtualHost) {
			continue
		}
		var found, absent *discovery.Resource
		for _, res := range r.GetResources() {
			if res.GetResource() != nil {
				found = res
			} else {
				absent = res
			}
		}
		if found.GetName() != "routes/shop" || !slices.Contains(found.GetAliases(), "routes/shop.example") {
			t.Errorf("found %v", found)
		}
		if absent.GetName() != "routes/nowhere.example" || !slices.Contains(absent.GetAliases(), "routes/nowhere.example") || len(r.GetRemovedResources()) > 0 {
			t.Errorf("absent %v, removed %v", absent, r.GetRemovedResources())
		}
		return
	}
}

func TestEachTypeHasAServiceOfItsOwn(t *testing.T) {
	c := &cache.Cache{}
	c.Publish(snapshot("C:a=1", "E:a=1"), time.Now())
	s, _ := running(t, Config{Cache: c})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	clusters, err := clusterservice.NewClusterDiscoveryServiceClient(dial(t, s)).DeltaClusters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := clusters.Send(&discovery.DeltaDiscoveryRequest{Node: nodeOf("p")}); err != nil { // the type goes without saying
		t.Fatal(err)
	}
	if r, err := clusters.Recv(); err != nil || r.GetTypeUrl() != string(cds) || len(r.GetResources()) != 1 {
		t.Errorf("%v %v", r, err)
	}
	endpoints, err := endpointservice.NewEndpointDiscoveryServiceClient(dial(t, s)).StreamEndpoints(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := endpoints.Send(&discovery.DiscoveryRequest{Node: nodeOf("p"), TypeUrl: string(eds), ResourceNames: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	if r, err := endpoints.Recv(); err != nil || r.GetTypeUrl() != string(eds) || len(r.GetResources()) != 1 {
		t.Errorf("%v %v", r, err)
	}
	if err := endpoints.Send(&discovery.DiscoveryRequest{TypeUrl: string(cds)}); err != nil {
		t.Fatal(err)
	}
	if r, err := endpoints.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("another type on it: %v %v", r, err)
	}
}

func TestToolsReadWhatEachProxyHolds(t *testing.T) {
	c := &cache.Cache{}
	c.Publish(snapshot("C:a=1", "C:b=1"), time.Now())
	s, ads := running(t, Config{Cache: c, CanaryShare: 1})
	good, bad := join(t, ads, "proxy-good", "", cds), join(t, ads, "proxy-bad", "a=1", cds)
	good.gets("C a=1 b=1")
	bad.gets("C a=1 b=1")
	good.say(&discovery.DeltaDiscoveryRequest{TypeUrl: string(eds), ResourceNamesSubscribe: []string{"z"}})
	good.gets("C -z")
	until(t, "both have answered", func() bool { return count(s, Synced) == 1 && count(s, Nacked) == 1 })
	told := func(request *statusservice.ClientStatusRequest) string {
		r, err := clientStatus{s: s}.FetchClientStatus(t.Context(), request)
		if err != nil {
			return err.Error()
		}
		var words []string
		for _, config := range r.GetConfig() {
			words = append(words, config.GetNode().GetId()+":")
			for _, x := range config.GetGenericXdsConfigs() {
				word := x.GetName() + "=" + x.GetVersionInfo() + "/" + x.GetConfigStatus().String() + "/" + string(x.GetXdsConfig().GetValue())
				if x.GetErrorState() != nil {
					word += "/" + x.GetErrorState().GetDetails()
				}
				words = append(words, word)
			}
		}
		return strings.Join(words, " ")
	}
	node := func(m *matcher.StringMatcher) []*matcher.NodeMatcher { return []*matcher.NodeMatcher{{NodeId: m}} }
	for name, c := range map[string]struct {
		request *statusservice.ClientStatusRequest
		want    string
	}{
		"one by name": {&statusservice.ClientStatusRequest{NodeMatchers: node(&matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: "proxy-good"}})},
			"proxy-good: a=1/SYNCED/1 b=1/SYNCED/1 z=/NOT_SENT/"},
		"one that refused": {&statusservice.ClientStatusRequest{ExcludeResourceContents: true, NodeMatchers: node(&matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Suffix{Suffix: "BAD"}, IgnoreCase: true})},
			"proxy-bad: a=1/ERROR//cluster a: no such field b=1/SYNCED/"},
		"none": {&statusservice.ClientStatusRequest{NodeMatchers: node(&matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_SafeRegex{SafeRegex: &matcher.RegexMatcher{Regex: "good"}}})}, ""},
		"all": {&statusservice.ClientStatusRequest{ExcludeResourceContents: true},
			"proxy-bad: a=1/ERROR//cluster a: no such field b=1/SYNCED/ proxy-good: a=1/SYNCED/ b=1/SYNCED/ z=/NOT_SENT/"},
		"by metadata": {&statusservice.ClientStatusRequest{NodeMatchers: []*matcher.NodeMatcher{{NodeMetadatas: []*matcher.StructMatcher{{}}}}},
			"rpc error: code = InvalidArgument desc = node_metadatas is not understood here: match by node_id"},
	} {
		if got := told(c.request); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}
