package conformance

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/meridian-mesh/meridian/xds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// variants are the suite's, with how many scenarios it has for each, and how many steps those have: its results count steps.
var variants = map[string]struct{ scenarios, steps float64 }{
	"sotw non-aggregated":        {24, 152},
	"sotw aggregated":            {26, 168},
	"incremental non-aggregated": {22, 168},
	"incremental aggregated":     {26, 208},
}

// unsubscribed is how long the suite's changes are held back.
const unsubscribed = 300 * time.Millisecond

// TestSuite runs the suite's own program, which says what failed in its results.
func TestSuite(t *testing.T) {
	xth := os.Getenv("XTH") // in the suite's folder, where its scenarios are
	if xth == "" {
		t.Skip("NOT RUN: build ii/xds-test-harness and give its program by XTH, or by `make conformance XTH=path`")
	}
	xth, err := filepath.Abs(xth)
	if err != nil {
		t.Fatal(err)
	}
	for variant, whole := range variants {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			server, control := harness(t, unsubscribed)
			results := runSuite(t, xth, variant, server, control)
			t.Logf("%v scenarios: %v of %v steps passed", whole.scenarios, results["Passed"], results["Total"])
			if results["Total"] != whole.steps || results["Passed"] != whole.steps {
				t.Errorf("want %v of %v steps passed:\n%s", whole.steps, whole.steps, indent(results))
			}
		})
	}
}

// runSuite runs one variant. The program always ends well; its results are in a file.
func runSuite(t *testing.T, xth, variant, server, control string) map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, xth, "-T", port(t, server), "-A", port(t, control), "-N", "test-id", "-V", variant)
	cmd.Dir = t.TempDir() // it reads its scenarios from there, and leaves its results there
	if err := os.CopyFS(filepath.Join(cmd.Dir, "features"), os.DirFS(filepath.Join(filepath.Dir(xth), "features"))); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	bytes, err := os.ReadFile(filepath.Join(cmd.Dir, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var results map[string]any
	if err := json.Unmarshal(bytes, &results); err != nil {
		t.Fatal(err)
	}
	return results
}

func port(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return ":" + port
}

func indent(v any) string {
	bytes, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(bytes)
}

// The adapter itself does what each call says, as a client sees it.
func TestAdapterChangesWhatAClientGets(t *testing.T) {
	server, control := harness(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	adapter := dial(t, control)
	tell := func(name string, values map[string]string) {
		t.Helper()
		in := dynamicpb.NewMessage(methods[name].request())
		for field, value := range values {
			in.Set(in.Descriptor().Fields().ByName(protoreflect.Name(field)), protoreflect.ValueOfString(value))
		}
		if err := adapter.Invoke(ctx, "/adapter.Adapter/"+name, in, methods[name].done()); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(dial(t, server)).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	gets := func(version string, count int) {
		t.Helper()
		r, err := stream.Recv()
		if err != nil || r.GetVersionInfo() != version || len(r.GetResources()) != count {
			t.Fatalf("version %q with %d resources, want %q with %d (%v)", r.GetVersionInfo(), len(r.GetResources()), version, count, err)
		}
		if err := stream.Send(&discovery.DiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(), VersionInfo: r.GetVersionInfo()}); err != nil {
			t.Fatal(err)
		}
	}
	one := map[string]string{"node": "n", "type": string(xds.TypeCluster), "name": "a", "version": "1"}
	with := func(field, value string) map[string]string {
		one[field] = value
		return one
	}
	tell("SetState", map[string]string{"node": "n", "version": "0"})
	tell("AddResource", one)
	if err := stream.Send(&discovery.DiscoveryRequest{Node: &core.Node{Id: "n"}, TypeUrl: string(xds.TypeCluster)}); err != nil {
		t.Fatal(err)
	}
	gets("1", 1)
	tell("UpdateResource", with("version", "2"))
	gets("2", 1)
	tell("RemoveResource", with("version", "3"))
	gets("3", 0)
	tell("AddResource", with("version", "4"))
	gets("4", 1)
	tell("ClearState", map[string]string{"node": "n"})
	gets("0000000000000000", 0)
}

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
