package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/meridian-mesh/meridian/internal/testbed/dataserver"
	"github.com/meridian-mesh/meridian/internal/testbed/loopback"
	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
)

// data starts a data server in the network of each cluster, and gives the pools of a service in YAML.
func data(t *testing.T, protocol dataserver.Protocol, clusters []mesh.Cluster) (servers map[string]*dataserver.Server, pools string) {
	t.Helper()
	servers = map[string]*dataserver.Server{}
	var parts []string
	ctx, cancel := context.WithCancel(context.Background())
	var ended []chan error
	for _, c := range clusters {
		s, err := dataserver.New(dataserver.Config{Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, c.Network, 2, 1}), 0), Name: c.Name, Protocol: protocol})
		if err != nil {
			t.Fatal(err)
		}
		end := make(chan error, 1)
		go func() { end <- s.Run(ctx) }()
		ended = append(ended, end)
		servers[c.Name] = s
		parts = append(parts, fmt.Sprintf("{cluster: %s, endpoints: [{address: %s, port: %d}]}", c.Name, s.Addr().Addr(), s.Addr().Port()))
	}
	t.Cleanup(func() {
		cancel()
		for _, end := range ended {
			if err := <-end; err != nil {
				t.Error(err)
			}
		}
	})
	return servers, "[" + strings.Join(parts, ", ") + "]"
}

// service is a Service policy, pinned to the EU.
func service(name, spec, pools string) string {
	return fmt.Sprintf(`---
apiVersion: meridian.dev/v1alpha1
kind: Service
metadata: {name: %[1]s}
spec: {%[2]s, pools: %[3]s}
---
apiVersion: meridian.dev/v1alpha1
kind: Residency
metadata: {name: %[1]s-stays}
spec: {match: {services: [%[1]s]}, within: [EU]}
`, name, spec, pools)
}

// Each data service is pinned to the EU and asked for in Virginia: dub-1 serves, then fra-1, then nobody. Where a protocol
// can't be retried, the first callers after a failure may be refused.
func failsOverInside(t *testing.T, servers map[string]*dataserver.Server, retried bool, ask func() string) {
	t.Helper()
	for range 3 {
		if got := ask(); got != "dub-1" {
			t.Errorf("served by %q, want dub-1, the nearest in the EU", got)
		}
	}
	for _, c := range []struct{ down, next string }{{"dub-1", "fra-1"}, {"fra-1", "refused"}} {
		if err := servers[c.down].Refuse(true); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(10 * time.Second); !retried && ask() != c.next && time.Now().Before(deadline); {
		}
		for range 5 {
			if got := ask(); got != c.next {
				t.Errorf("with %s down: %q, want %s", c.down, got, c.next)
			}
		}
	}
	if n := servers["iad-1"].Served(); n > 0 {
		t.Errorf("%d requests left the EU", n)
	}
}

func TestHTTPServiceIsPinnedAndFailsOver(t *testing.T) {
	servers, pools := data(t, dataserver.HTTP, three())
	m := start(t, mesh.Config{Clusters: three(), Policies: service("documents", "protocol: HTTP, hosts: [documents.internal], paths: [/v1/docs]", pools)})
	r := request{at: m.Member("iad-1"), path: "/v1/docs/7", body: "hello", client: american, header: map[string]string{"host": "documents.internal"}}
	failsOverInside(t, servers, true, func() string {
		a := send(t, r)
		if a.status != 200 {
			return "refused"
		}
		return a.cluster
	})
	r.header = nil
	if a := send(t, r); a.status != 404 {
		t.Errorf("without the host: %d %s", a.status, a.body)
	}
}

func TestGRPCServiceIsPinnedAndFailsOver(t *testing.T) {
	servers, pools := data(t, dataserver.GRPC, three())
	m := start(t, mesh.Config{Clusters: three(), Policies: service("features", "protocol: GRPC, paths: [/"+dataserver.EchoService+"/]", pools)})
	conn, err := grpc.NewClient(m.Member("iad-1").HTTP.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	failsOverInside(t, servers, true, func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var header metadata.MD
		in, out := wrapperspb.String("hello"), &wrapperspb.StringValue{}
		if err := conn.Invoke(ctx, dataserver.EchoMethod, in, out, grpc.Header(&header)); err != nil {
			return "refused"
		}
		if got := header.Get("x-meridian-cluster"); len(got) == 1 {
			return got[0]
		}
		return "nobody"
	})
}

func TestTCPServiceIsPinnedAndFailsOver(t *testing.T) {
	servers, pools := data(t, dataserver.TCP, three())
	port, err := loopback.Free(netip.AddrFrom4([4]byte{127, 130, 0, 1}))
	if err != nil {
		t.Fatal(err)
	}
	m := start(t, mesh.Config{Clusters: three(), Policies: service("vectors", fmt.Sprintf("protocol: TCP, port: %d", port.Port()), pools)})
	to := netip.AddrPortFrom(m.Member("iad-1").HTTP.Addr(), port.Port())
	failsOverInside(t, servers, false, func() string {
		c, err := net.DialTimeout("tcp", to.String(), 5*time.Second)
		if err != nil {
			return "refused"
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		greeting, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			return "refused"
		}
		return strings.TrimSpace(greeting)
	})
}
