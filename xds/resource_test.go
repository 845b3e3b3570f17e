package xds

import (
	"strings"
	"testing"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// resource makes a cluster of a name, whose alternative name stands for its content.
func resource(t testing.TB, name, content string) *Resource {
	t.Helper()
	r, err := NewResource(TypeCluster, name, &cluster.Cluster{Name: name, AltStatName: content})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVersionFollowsContent(t *testing.T) {
	a, same, other := resource(t, "a", "1"), resource(t, "a", "1"), resource(t, "a", "2")
	if a.Version != same.Version || string(a.Bytes) != string(same.Bytes) {
		t.Errorf("equal content, versions %s and %s", a.Version, same.Version)
	}
	if a.Version == other.Version {
		t.Errorf("other content, the same version %s", a.Version)
	}
}

// Maps have no order, bytes must have one: replicas that build the same must send the same.
func TestBytesDoNotDependOnMapOrder(t *testing.T) {
	assignment := func() *endpoint.ClusterLoadAssignment {
		fields := map[string]*structpb.Value{}
		for _, key := range strings.Split("cluster region reason zone share more", " ") {
			fields[key] = structpb.NewStringValue(key)
		}
		return &endpoint.ClusterLoadAssignment{ClusterName: "a", Endpoints: []*endpoint.LocalityLbEndpoints{{LbEndpoints: []*endpoint.LbEndpoint{{
			Metadata: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{MetadataNamespace: {Fields: fields}}}}}}}}
	}
	first, err := NewResource(TypeEndpoint, "a", assignment())
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		again, err := NewResource(TypeEndpoint, "a", assignment())
		if err != nil || again.Version != first.Version {
			t.Fatalf("version %s, then %s (%v)", first.Version, again.Version, err)
		}
	}
}

func TestBytesAreTheMessage(t *testing.T) {
	r := resource(t, "a", "1")
	var back cluster.Cluster
	if err := proto.Unmarshal(r.Bytes, &back); err != nil {
		t.Fatal(err)
	}
	if back.Name != "a" || back.AltStatName != "1" {
		t.Errorf("got %v", &back)
	}
}

func TestMessageThatCannotBeSerialisedIsAnError(t *testing.T) {
	_, err := NewResource(TypeCluster, "broken", &cluster.Cluster{Name: "\xff"})
	if err == nil || !strings.Contains(err.Error(), `Cluster "broken"`) {
		t.Errorf("want an error that names the resource, got %v", err)
	}
}

func TestShort(t *testing.T) {
	for typ, want := range map[Type]string{
		TypeSecret: "Secret", TypeCluster: "Cluster", TypeEndpoint: "ClusterLoadAssignment", TypeListener: "Listener", TypeRoute: "RouteConfiguration",
		"plain": "plain", "": "", "ends.": "",
	} {
		if got := typ.Short(); got != want {
			t.Errorf("%q: got %q, want %q", typ, got, want)
		}
	}
}
