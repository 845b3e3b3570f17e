package process

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a shell script, and waits until it has said "ready".
func start(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start("script", exec.Command("sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	deadline, tick := time.After(20*time.Second), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(p.Log(), "ready") {
		select {
		case <-deadline:
			t.Fatalf("not ready; its log: %s", p.Log())
		case <-tick.C:
		}
	}
	return p
}

func TestStopIsAskedForFirst(t *testing.T) {
	p := start(t, "trap 'echo goodbye; exit 3' TERM; echo ready; while :; do sleep 0.01; done")
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "3") || !strings.Contains(p.Log(), "goodbye") {
		t.Errorf("it ended with %v; its log: %s", err, p.Log())
	}
}

func TestStopKillsWhatDoesNotEnd(t *testing.T) {
	p := start(t, "trap '' TERM; echo ready; while :; do sleep 0.01; done")
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(p.Pid(), 0); err != syscall.ESRCH {
		t.Errorf("it is still there: %v", err)
	}
}

func TestAPausedProcessCanBeEnded(t *testing.T) {
	for name, end := range map[string]func(*Process) error{"Stop": (*Process).Stop, "Kill": (*Process).Kill} {
		p := start(t, "echo ready; exec sleep 600")
		if err := p.Pause(); err != nil {
			t.Fatal(err)
		}
		if err := end(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := end(p); err != nil {
			t.Errorf("%s again: %v", name, err)
		}
	}
}

func TestStartSaysWhatIsMissing(t *testing.T) {
	if _, err := Start("nothing", exec.Command("no-such-program")); err == nil || !strings.Contains(err.Error(), "start nothing") {
		t.Errorf("%v", err)
	}
}
