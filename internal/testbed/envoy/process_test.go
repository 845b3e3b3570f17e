package envoy

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/meridian-mesh/meridian/internal/testbed/loopback"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func bootstrap(t *testing.T) Config {
	t.Helper()
	admin, err := loopback.Free(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	return Config{Admin: admin, Bootstrap: fmt.Appendf(nil, "admin: {address: {socket_address: {address: %s, port_value: %d}}}\n", admin.Addr(), admin.Port())}
}

func start(t *testing.T, c Config) *Process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p, err := Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStartStop(t *testing.T) {
	p := start(t, bootstrap(t))
	info, err := p.Get(t.Context(), "/server_info")
	if err != nil || !strings.Contains(string(info), "LIVE") {
		t.Errorf("server_info: %v %s", err, info)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("Kill after Stop: %v", err)
	}
}

func TestKillEndsAPausedProcess(t *testing.T) {
	p := start(t, bootstrap(t))
	pid := p.pid
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := p.Get(ctx, "/ready"); err == nil {
		t.Error("a paused process answered")
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("process %d is still there: %v", pid, err)
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	c := bootstrap(t)
	c.Bootstrap = []byte("admin: {no_such_field: 1}")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := Start(ctx, c); err == nil || !strings.Contains(err.Error(), "no_such_field") {
		t.Errorf("error %v does not name the field", err)
	}
	if err := Validate(ctx, c.Bootstrap); err == nil || !strings.Contains(err.Error(), "no_such_field") {
		t.Errorf("error %v does not name the field", err)
	}
}
