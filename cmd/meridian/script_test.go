package main

import (
	"context"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/meridian-mesh/meridian/internal/testbed/envoy"
	"github.com/meridian-mesh/meridian/internal/testbed/loopback"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"meridian": main})
}

// Each script tells of one verb.
func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../policies/examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "", RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("EXAMPLES", examples)
			return nil
		},
	})
}

// serve becomes ready, says its status, and ends in order when it is told to.
func TestServeUntilItIsToldToEnd(t *testing.T) {
	address, err := loopback.Free(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var out, errs strings.Builder
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"serve", "--policies", "../../policies/examples/three-regions.yaml", "--xds-address", "127.0.0.1:0", "--http-address", address.String()}, &out, &errs)
	}()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ready := false; !ready; {
		select {
		case <-deadline:
			t.Fatal("not ready")
		case c := <-code:
			t.Fatalf("ended with %d: %s", c, errs.String())
		case <-tick.C:
			ready = get("http://"+address.String()+"/readyz") == 200
		}
	}
	if got := get("http://" + address.String() + "/healthz"); got != 200 {
		t.Errorf("healthz: %d", got)
	}
	var status, statusErrs strings.Builder
	if c := run(t.Context(), []string{"status", "--server", address.String()}, &status, &statusErrs); c != 0 || !strings.Contains(status.String(), "llama") {
		t.Errorf("status: %d %s %s", c, status.String(), statusErrs.String())
	}
	stop()
	if c := <-code; c != 0 {
		t.Errorf("ended with %d: %s", c, errs.String())
	}
}

// get is the status of a page; 0 where there is none.
func get(url string) int {
	response, err := http.Get(url)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

// The real Envoy accepts what bootstrap prints.
func TestBootstrapIsAccepted(t *testing.T) {
	for _, protocol := range []string{"", "--state-of-the-world"} {
		var out, errs strings.Builder
		args := []string{"bootstrap", "--cluster", "fra-1", "--region", "frankfurt", "--id", "p", "--admin", "127.0.0.1:0", "--server", "127.0.0.1:1,127.0.0.1:2"}
		if protocol != "" {
			args = append(args, protocol)
		}
		if code := run(t.Context(), args, &out, &errs); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := envoy.Validate(ctx, []byte(out.String())); err != nil {
			t.Error(err)
		}
	}
}

// Every command and flag that the documents name is there.
func TestDocumentsNameCommandsThatExist(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	lines := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			command, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "meridian ")
			if !ok {
				continue
			}
			lines++
			checkCommand(t, path, strings.Fields(command))
		}
	}
	if lines < 10 {
		t.Errorf("only %d commands found in %d documents", lines, len(paths))
	}
}

func checkCommand(t *testing.T, path string, words []string) {
	t.Helper()
	c, rest, err := newRoot().Find(words)
	if err != nil || !c.HasParent() {
		t.Errorf("%s names `meridian %s`, which does not exist", path, strings.Join(words, " "))
		return
	}
	for _, w := range rest {
		if name, ok := strings.CutPrefix(w, "--"); ok && c.Flags().Lookup(name) == nil {
			t.Errorf("%s: `meridian %s` has no flag --%s", path, c.Name(), name)
		}
	}
}

// Every command says what it is for and shows how it is called.
func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	for _, c := range newRoot().Commands() {
		if c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		if c.Short == "" || c.Example == "" {
			t.Errorf("meridian %s has no description or no example", c.Name())
		}
	}
}
