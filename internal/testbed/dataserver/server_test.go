package dataserver_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/meridian-mesh/meridian/internal/testbed/dataserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a server until the test ends.
func start(t *testing.T, p dataserver.Protocol) *dataserver.Server {
	t.Helper()
	s, err := dataserver.New(dataserver.Config{Address: netip.MustParseAddrPort("127.0.0.1:0"), Name: "db-1", Protocol: p})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

func counted(t *testing.T, s *dataserver.Server, served, bytes int64) {
	t.Helper()
	if s.Served() != served || s.Bytes() != bytes {
		t.Errorf("served %d and %d bytes, want %d and %d", s.Served(), s.Bytes(), served, bytes)
	}
}

func healthStatus(t *testing.T, s *dataserver.Server) int {
	t.Helper()
	r, err := http.Get("http://" + s.Addr().String() + "/health")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return r.StatusCode
}

func TestHTTP(t *testing.T) {
	s := start(t, dataserver.HTTP)
	r, err := http.Post("http://"+s.Addr().String()+"/any/path", "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || string(body) != "db-1\nhello" || r.Header.Get("x-served-by") != "db-1" {
		t.Errorf("got %q, %v from %q", body, err, r.Header.Get("x-served-by"))
	}
	for _, want := range []struct {
		healthy bool
		status  int
	}{{false, 503}, {true, 200}} {
		if err := s.SetHealthy(want.healthy); err != nil {
			t.Fatal(err)
		}
		if got := healthStatus(t, s); got != want.status {
			t.Errorf("healthy %v: status %d", want.healthy, got)
		}
	}
	counted(t, s, 1, 5)
}

func TestGRPC(t *testing.T) {
	s := start(t, dataserver.GRPC)
	c, err := grpc.NewClient(s.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var header metadata.MD
	out := new(wrapperspb.StringValue)
	err = c.Invoke(t.Context(), dataserver.EchoMethod, wrapperspb.String("hello"), out, grpc.Header(&header))
	if err != nil || out.GetValue() != "db-1\nhello" || header.Get("x-served-by")[0] != "db-1" {
		t.Errorf("got %q, %v with %v", out.GetValue(), err, header)
	}
	for _, want := range []struct {
		healthy bool
		status  healthpb.HealthCheckResponse_ServingStatus
	}{{false, healthpb.HealthCheckResponse_NOT_SERVING}, {true, healthpb.HealthCheckResponse_SERVING}} {
		if err := s.SetHealthy(want.healthy); err != nil {
			t.Fatal(err)
		}
		for _, service := range []string{"", dataserver.EchoService} {
			h, err := healthpb.NewHealthClient(c).Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
			if err != nil || h.GetStatus() != want.status {
				t.Errorf("healthy %v: %v, %v", want.healthy, h, err)
			}
		}
	}
	counted(t, s, 1, 5)
}

func TestTCP(t *testing.T) {
	s := start(t, dataserver.TCP)
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lines := bufio.NewReader(c)
	for _, line := range []string{"db-1\n", "hello\n", "again\n"} {
		if line != "db-1\n" {
			if _, err := io.WriteString(c, line); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := lines.ReadString('\n'); err != nil || got != line {
			t.Errorf("got %q, %v; want %q", got, err, line)
		}
	}
	counted(t, s, 1, 12)
	if err := s.SetHealthy(false); err != nil {
		t.Fatal(err)
	}
	if _, err := lines.ReadByte(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
	if _, err := net.Dial("tcp", s.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want it refused", err)
	}
	if err := s.SetHealthy(true); err != nil {
		t.Fatal(err)
	}
	back, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	back.Close()
}

func TestRefuseAndKill(t *testing.T) {
	for _, p := range []dataserver.Protocol{dataserver.HTTP, dataserver.GRPC, dataserver.TCP} {
		t.Run(string(p), func(t *testing.T) {
			s := start(t, p)
			dial := func() error {
				c, err := net.Dial("tcp", s.Addr().String())
				if err == nil {
					c.Close()
				}
				return err
			}
			if err := s.Refuse(true); err != nil {
				t.Fatal(err)
			}
			if err := dial(); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("got %v, want it refused", err)
			}
			if err := s.Refuse(false); err != nil {
				t.Fatal(err)
			}
			if err := dial(); err != nil {
				t.Error(err)
			}
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := dial(); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("got %v, want it refused", err)
			}
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	address := netip.MustParseAddrPort("127.0.0.1:0")
	for name, c := range map[string]dataserver.Config{
		"no name":         {Address: address, Protocol: dataserver.TCP},
		"no protocol":     {Address: address, Name: "n"},
		"an open address": {Address: netip.MustParseAddrPort("0.0.0.0:0"), Name: "n", Protocol: dataserver.TCP},
	} {
		if _, err := dataserver.New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
