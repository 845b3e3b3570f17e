package serve

import (
	"slices"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

// FuzzParse compares what is read by hand with what protobuf reads.
func FuzzParse(f *testing.F) {
	for _, m := range []proto.Message{
		&discovery.DiscoveryRequest{},
		&discovery.DiscoveryRequest{VersionInfo: "1", TypeUrl: string(cds), ResponseNonce: "2", ResourceNames: []string{"b", "a", "b"}, Node: &core.Node{Id: "p"}},
		&discovery.DiscoveryRequest{TypeUrl: "x", ErrorDetail: &rpc.Status{Code: 3, Message: "no"}},
		&discovery.DeltaDiscoveryRequest{TypeUrl: string(eds), ResponseNonce: "2", ResourceNamesSubscribe: []string{"a", "*"}, ResourceNamesUnsubscribe: []string{"c"}},
		&discovery.DeltaDiscoveryRequest{Node: &core.Node{Id: "p", Cluster: "c"}, InitialResourceVersions: map[string]string{"a": "1", "b": "", "": "2"}},
	} {
		bytes, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes, true)
		f.Add(bytes, false)
	}
	f.Fuzz(func(t *testing.T, bytes []byte, full bool) {
		if full {
			compareState(t, bytes)
		} else {
			compareDelta(t, bytes)
		}
	})
}

func compareState(t *testing.T, bytes []byte) {
	var want discovery.DiscoveryRequest
	in, err := stateFields.parse(bytes, table)
	if proto.Unmarshal(bytes, &want) != nil {
		return // what protobuf refuses may be read here: fields that are not looked at are not decoded
	}
	if err != nil {
		t.Fatalf("protobuf reads it, and here it is %v", err)
	}
	got := in.request
	if got.version != want.GetVersionInfo() || string(got.typ) != want.GetTypeUrl() || got.nonce != want.GetResponseNonce() {
		t.Errorf("got %+v, want %v", got, &want)
	}
	compareNames(t, got.names, want.GetResourceNames())
	if (want.GetErrorDetail() != nil) != (got.refusal != "") {
		t.Errorf("refusal %q, want %v", got.refusal, want.GetErrorDetail())
	}
}

func compareDelta(t *testing.T, bytes []byte) {
	var want discovery.DeltaDiscoveryRequest
	in, err := deltaFields.parse(bytes, table)
	if proto.Unmarshal(bytes, &want) != nil {
		return
	}
	if err != nil {
		t.Fatalf("protobuf reads it, and here it is %v", err)
	}
	got := in.request
	if string(got.typ) != want.GetTypeUrl() || got.nonce != want.GetResponseNonce() {
		t.Errorf("got %+v, want %v", got, &want)
	}
	compareNames(t, got.subscribe, want.GetResourceNamesSubscribe())
	compareNames(t, got.unsubscribe, want.GetResourceNamesUnsubscribe())
	if held := got.held.versions(); len(held)+len(want.GetInitialResourceVersions()) > 0 {
		if diff := cmp.Diff(want.GetInitialResourceVersions(), held); diff != "" {
			t.Error(diff)
		}
	}
}

func compareNames(t *testing.T, got *names, want []string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got.list(), slices.Compact(want)) {
		t.Errorf("names %q, want %q", got.list(), want)
	}
}

func TestNamesThatAreAskedForByManyAreKeptOnce(t *testing.T) {
	table := newNameTable()
	request, err := proto.Marshal(&discovery.DiscoveryRequest{ResourceNames: []string{"b", "a"}})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stateFields.parse(request, table)
	if err != nil {
		t.Fatal(err)
	}
	again, err := stateFields.parse(request, table)
	if err != nil {
		t.Fatal(err)
	}
	if first.request.names != again.request.names {
		t.Error("the same names are there twice")
	}
	if n := table.plus(table.of("a"), table.of("b")); n != first.request.names {
		t.Error("the same names, put together, are there twice")
	}
	if n := table.minus(table.of("a", "b", "c"), table.of("c")); n != first.request.names {
		t.Error("the same names, taken out, are there twice")
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = stateFields.parse(request, table) }); n > 0 {
		t.Errorf("reading names that are known costs %v allocations", n)
	}
}

func TestRequestsThatDoNotDecodeAreRefused(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"cut off":                   {0x1a, 5, 'a'},
		"no tag":                    {0xff},
		"a name that is not UTF-8":  {0x1a, 1, 0xff},
		"a type that is not UTF-8":  {0x12, 1, 0xff},
		"a node that is none":       {0x0a, 1, 0xff},
		"a version that is not one": {0x2a, 2, 0x0a, 9},
	} {
		if _, err := deltaFields.parse(bytes, table); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
