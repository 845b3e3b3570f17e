package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/internal/controlplane"
	"github.com/meridian-mesh/meridian/internal/testbed/envoy"
	"github.com/meridian-mesh/meridian/internal/testbed/loopback"
	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/bootstrap"
	"github.com/meridian-mesh/meridian/xds/serve"
)

// build builds the command.
func build(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "meridian")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/meridian").CombinedOutput(); err != nil {
		t.Fatalf("build the command: %v\n%s", err, out)
	}
	return binary
}

// server is a control plane in a process of its own.
type server struct {
	*exec.Cmd
	binary    string
	xds, http netip.AddrPort
	log       bytes.Buffer // to be read when the process has ended
}

// startServer starts a control plane. It ends with the test, if not before.
func startServer(t *testing.T, binary string, args ...string) *server {
	t.Helper()
	s := &server{binary: binary}
	for _, a := range []*netip.AddrPort{&s.xds, &s.http} {
		free, err := loopback.Free(netip.MustParseAddr("127.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		*a = free
	}
	s.Cmd = exec.CommandContext(t.Context(), binary, append([]string{"serve", "--xds-address", s.xds.String(), "--http-address", s.http.String()}, args...)...)
	s.Stderr = &s.log
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.ProcessState == nil {
			s.end(t, syscall.SIGKILL)
		}
		if t.Failed() {
			t.Logf("control plane: %s", &s.log)
		}
	})
	return s
}

// end sends a signal and waits for the process to end.
func (s *server) end(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := s.Process.Signal(signal); err != nil {
		t.Error(err)
	}
	err := s.Wait()
	var exit *exec.ExitError
	if killed := signal == syscall.SIGKILL; killed != errors.As(err, &exit) || !killed && err != nil {
		t.Errorf("after %v: %v", signal, err)
	}
}

// get asks the HTTP surface; the answer of one that does not listen yet is empty.
func (s *server) get(t *testing.T, path string) string {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.http.String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(q)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(response.StatusCode, " ", string(body))
}

func (s *server) status(t *testing.T) (status controlplane.Status) {
	t.Helper()
	if body, ok := strings.CutPrefix(s.get(t, "/api/v1/status"), "200 "); ok {
		if err := json.Unmarshal([]byte(body), &status); err != nil {
			t.Fatal(err)
		}
	}
	return status
}

// gateway starts a new Envoy in the place of a cluster's gateway, which must be gone.
func (s *server) gateway(t *testing.T, at *mesh.Member) *envoy.Process {
	t.Helper()
	admin, err := loopback.Free(at.Admin.Addr())
	if err != nil {
		t.Fatal(err)
	}
	config, err := bootstrap.New(bootstrap.Config{
		ID: at.Name + "-new", Servers: []netip.AddrPort{s.xds}, Admin: admin, Source: at.Admin.Addr(),
		Viewpoint: world.Viewpoint{Role: policies.RoleGateway, Region: policies.RegionName(at.Region), Cluster: policies.ClusterName(at.Name)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p, err := envoy.Start(ctx, envoy.Config{Bootstrap: config, Admin: admin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// versions are what the only proxy has accepted, by type; nil where that is not all that there is.
func (s *server) versions(t *testing.T) map[string]string {
	t.Helper()
	proxies := s.status(t).Proxies
	if len(proxies) != 1 || proxies[0].State != serve.Synced {
		return nil
	}
	versions := map[string]string{}
	for _, of := range proxies[0].Types {
		versions[of.Type] = of.Accepted
	}
	return versions
}

// wantServed wants requests to be served, those of Germans inside the EU.
func wantServed(t *testing.T, at *mesh.Member) {
	t.Helper()
	for range 10 {
		if a := send(t, chat(at, german)); a.status != 200 || a.cluster != "dub-1" && a.cluster != "fra-1" {
			t.Errorf("a German: %d by %q: %s", a.status, a.cluster, a.body)
		}
		if a := send(t, chat(at, american)); a.status != 200 {
			t.Errorf("an American: %d: %s", a.status, a.body)
		}
	}
}

// The control plane is killed, and when it starts again its policies are gone: a new Envoy is given what was published
// last, and serves. Status says that it is stale, until the policies are back.
func TestRestartWithNothingReachableServesWhatWasPublished(t *testing.T) {
	m, binary, state := start(t, mesh.Config{Clusters: three(), Policies: euPinned}), build(t), filepath.Join(t.TempDir(), "state")
	m.StopPlane()
	at := m.Member("iad-1")
	if err := at.Gateway().Kill(); err != nil {
		t.Fatal(err)
	}
	until := func(what string, holds func() bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := m.Until(ctx, what, holds); err != nil {
			t.Fatal(err)
		}
	}

	first := startServer(t, binary, "--policies", m.PolicyDir(), "--state-dir", state)
	until("the first is ready", func() bool { return strings.HasPrefix(first.get(t, "/readyz"), "200 ") })
	gateway := first.gateway(t, at)
	until("every server is judged healthy", func() bool {
		pools := first.status(t).Pools
		return len(pools) == 3 && !slices.ContainsFunc(pools, func(p controlplane.PoolStatus) bool { return p.Healthy < p.Endpoints })
	})
	wantServed(t, at)
	var versions map[string]string
	until("all that the gateway has is on disk", func() bool {
		versions = first.versions(t)
		onDisk := strings.Contains(first.get(t, "/metrics"), "\nmeridian_state_behind 0\n")
		return onDisk && len(versions) > 0 && maps.Equal(versions, first.versions(t))
	})
	first.end(t, syscall.SIGKILL)
	if err := gateway.Kill(); err != nil {
		t.Fatal(err)
	}

	gone := m.PolicyDir() + ".gone"
	if err := os.Rename(m.PolicyDir(), gone); err != nil {
		t.Fatal(err)
	}
	second := startServer(t, binary, "--policies", m.PolicyDir(), "--state-dir", state)
	until("the second is ready, on what was published", func() bool { return strings.HasPrefix(second.get(t, "/readyz"), "200 ok: no policies") })
	second.gateway(t, at)
	wantServed(t, at)
	until("the new gateway has accepted all", func() bool { return second.versions(t) != nil })
	if diff := cmp.Diff(versions, second.versions(t)); diff != "" {
		t.Errorf("the new gateway has something else than the old one: %s", diff)
	}
	s := second.status(t)
	if len(s.Stale) != 1 || s.Stale[0].Viewpoint != "gateway/virginia/iad-1" || time.Since(s.Stale[0].Published) > time.Minute {
		t.Errorf("stale is %v", s.Stale)
	}
	if len(s.Proxies) != 1 || !s.Proxies[0].Stale || s.Policies.Hash != "" || s.Policies.Error == "" {
		t.Errorf("status is %+v", s)
	}
	if out, err := exec.CommandContext(t.Context(), binary, "status", "--server", second.http.String()).CombinedOutput(); err != nil || !strings.Contains(string(out), "STALE, nothing newer is known") {
		t.Errorf("meridian status: %v\n%s", err, out)
	}

	if err := os.Rename(gone, m.PolicyDir()); err != nil {
		t.Fatal(err)
	}
	until("nothing is stale any more", func() bool {
		s := second.status(t)
		return s.Policies.Hash != "" && len(s.Stale) == 0 && !s.Proxies[0].Stale
	})
	wantServed(t, at)
	second.end(t, syscall.SIGTERM)
}
