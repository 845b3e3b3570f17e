package envoy

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/meridian-mesh/meridian/internal/testbed/loopback"
)

func TestMain(m *testing.M) {
	if os.Getenv(crash) != "" {
		startAndCrash()
	}
	goleak.VerifyTestMain(m)
}

// config is that of an Envoy with an admin interface and whatever else is given, in YAML.
func config(t *testing.T, rest string) Config {
	t.Helper()
	admin, err := loopback.Free(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	return Config{Admin: admin, Bootstrap: fmt.Appendf(nil,
		"node: {id: test, cluster: test}\nadmin: {address: {socket_address: {address: %s, port_value: %d}}}\n%s", admin.Addr(), admin.Port(), rest)}
}

// within is a context that ends with the test, and well before its deadline.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// start starts an Envoy that ends with the test.
func start(t *testing.T, c Config) *Process {
	t.Helper()
	p, err := Start(within(t), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(p.Log())
		}
	})
	return p
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, tick := within(t), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}

func assertGone(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("process %d is still there: %v", pid, err)
	}
}

func TestStopLeavesNothingBehind(t *testing.T) {
	c := config(t, "")
	c.LogLevel, c.ComponentLog, c.Concurrency = "info", "main:debug", 2
	p := start(t, c)
	if err := p.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	assertGone(t, p.Pid())
	if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
		t.Errorf("its folder is still there: %v", err)
	}
	if !strings.Contains(p.Log(), "caught ENVOY_SIGTERM") {
		t.Errorf("it was not stopped in peace; its log:\n%s", p.Log())
	}
	if err := p.Kill(); err != nil {
		t.Errorf("Kill after Stop: %v", err)
	}
}

func TestAPausedProcessAnswersWhenResumed(t *testing.T) {
	p := start(t, config(t, ""))
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Ready(ctx); err == nil {
		t.Error("a paused process answered")
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := p.Ready(within(t)); err != nil {
		t.Error(err)
	}
}

func TestStopEndsAPausedProcess(t *testing.T) {
	p := start(t, config(t, ""))
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	assertGone(t, p.Pid())
}

func TestKillEndsAPausedProcess(t *testing.T) {
	p := start(t, config(t, ""))
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	assertGone(t, p.Pid())
}

func TestExitedTellsOfADeath(t *testing.T) {
	p := start(t, config(t, ""))
	if err := syscall.Kill(p.Pid(), syscall.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Exited():
	case <-within(t).Done():
		t.Fatal("nobody was told")
	}
	if !strings.Contains(p.Log(), "Segmentation fault") {
		t.Errorf("its last words are lost; its log:\n%s", p.Log())
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	c := config(t, "no_such_field: 1\n")
	if _, err := Start(within(t), c); err == nil || !strings.Contains(err.Error(), "no_such_field") {
		t.Errorf("error %v does not name the field", err)
	}
	if err := Validate(within(t), c.Bootstrap); err == nil || !strings.Contains(err.Error(), "no_such_field") {
		t.Errorf("error %v does not name the field", err)
	}
}

func TestValidateAcceptsWhatRuns(t *testing.T) {
	if err := Validate(within(t), config(t, "").Bootstrap); err != nil {
		t.Error(err)
	}
}

func TestBinaryIsTheOneThatTheEnvironmentNames(t *testing.T) {
	t.Setenv(EnvBinary, filepath.Join(t.TempDir(), "none"))
	if _, err := Start(within(t), config(t, "")); err == nil || !strings.Contains(err.Error(), EnvBinary) {
		t.Errorf("error %v does not name %s", err, EnvBinary)
	}
}

func TestBinaryMissingSaysWhatToDo(t *testing.T) {
	t.Setenv(EnvBinary, "")
	t.Setenv("PATH", "")
	t.Chdir(t.TempDir())
	if _, err := Binary(); err == nil || !strings.Contains(err.Error(), "make envoy") {
		t.Errorf("error %v does not say what to do", err)
	}
}

// crash names the variable that makes this test binary start an Envoy and die without ending it.
const crash = "MERIDIAN_TEST_CRASH"

// startAndCrash starts an Envoy on the admin address in the environment, prints its process ID, and crashes.
func startAndCrash() {
	admin := netip.MustParseAddrPort(os.Getenv(crash))
	bootstrap := fmt.Appendf(nil, "admin: {address: {socket_address: {address: %s, port_value: %d}}}\n", admin.Addr(), admin.Port())
	p, err := Start(context.Background(), Config{Admin: admin, Bootstrap: bootstrap})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.Pid())
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		fmt.Println(err)
	}
	select {}
}

func TestACrashedProgramTakesItsEnvoysWithIt(t *testing.T) {
	cmd := exec.CommandContext(within(t), os.Args[0])
	cmd.Env = append(os.Environ(), crash+"="+config(t, "").Admin.String())
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir())
	out, _ := cmd.Output() // it ends by SIGKILL
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatalf("no process ID: %s", out)
	}
	until(t, "its Envoy is gone", func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
}

// zombie tells whether a process has ended and only waits for whoever adopted it to take notice.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && strings.HasPrefix(state, "Z")
}
