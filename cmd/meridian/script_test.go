package main

import (
	"errors"
	"flag"
	"net/http"
	"net/netip"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/meridian-mesh/meridian/internal/testbed/loopback"
)

var update = flag.Bool("update", false, "rewrite what scripts compare with, and the references that are generated")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"meridian": main})
}

// Each script tells of one verb. $EXAMPLES is the folder of examples, $HTTP an address that is free.
func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../policies/examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "until": until, "ready": ready, "terminate": terminate},
		Setup: func(e *testscript.Env) error {
			e.Setenv("EXAMPLES", examples)
			address, err := loopback.Free(netip.MustParseAddr("127.0.0.1"))
			e.Setenv("HTTP", address.String())
			e.Setenv("GORACE", "atexit_sleep_ms=0") // else each command waits a second at its end
			return err
		},
	})
}

// exits runs a command that must end with a code: "exits 3 meridian validate bad".
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// until runs a command again and again until what it prints matches: "until PATTERN meridian status".
func until(ts *testscript.TestScript, _ bool, args []string) {
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	await(ts, args[0], func() bool {
		return ts.Exec(args[1], args[2:]...) == nil && pattern.MatchString(ts.ReadFile("stdout"))
	})
}

// ready waits until a control plane says that it can serve: "ready ADDRESS".
func ready(ts *testscript.TestScript, _ bool, args []string) {
	await(ts, "ready", func() bool {
		response, err := http.Get("http://" + args[0] + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close() // nothing was written
		return response.StatusCode == http.StatusOK
	})
}

// terminate asks the commands in the background to end, as Kubernetes does.
func terminate(ts *testscript.TestScript, _ bool, _ []string) {
	for _, c := range ts.BackgroundCmds() {
		ts.Check(c.Process.Signal(syscall.SIGTERM))
	}
}

func await(ts *testscript.TestScript, what string, holds func() bool) {
	deadline, tick := time.After(30*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			ts.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
