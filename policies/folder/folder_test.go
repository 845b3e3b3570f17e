package folder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/meridian-mesh/meridian/policies"
)

// patience is how long a test waits for what must happen; what must not happen is shown by what happens after it.
const patience = 10 * time.Second

// watched is a folder under test and what it told.
type watched struct {
	*Folder
	dir    string
	sets   chan *policies.Set
	errors chan error
}

// start watches dir; events, or only polls, must then suffice.
func start(t *testing.T, dir string, c Config, without error) *watched {
	t.Helper()
	w := &watched{dir: dir, sets: make(chan *policies.Set, 100), errors: make(chan error, 100)}
	c.Dir, c.OnSet, c.OnError = dir, func(s *policies.Set) { w.sets <- s }, func(err error) { w.errors <- err }
	c.Debounce = 5 * time.Millisecond
	var err error
	if w.Folder, err = New(c); err != nil {
		t.Fatal(err)
	}
	if without != nil {
		w.newWatcher = func() (*fsnotify.Watcher, error) { return nil, without }
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return w
}

// byEvents watches with so slow a poll that only events can tell.
func byEvents(t *testing.T, dir string) *watched {
	return start(t, dir, Config{Poll: time.Hour}, nil)
}

func byPolls(t *testing.T, dir string) *watched {
	w := start(t, dir, Config{Poll: 10 * time.Millisecond}, errors.New("too many open files"))
	if err := w.nextError(t); !strings.Contains(err.Error(), "too many open files") {
		t.Fatalf("first error %v, want why there are no events", err)
	}
	return w
}

func (w *watched) nextSet(t *testing.T) *policies.Set {
	t.Helper()
	select {
	case s := <-w.sets:
		return s
	case <-time.After(patience):
		t.Fatalf("no set; status: %+v", w.Status())
		return nil
	}
}

func (w *watched) nextError(t *testing.T) error {
	t.Helper()
	select {
	case err := <-w.errors:
		return err
	case <-time.After(patience):
		t.Fatalf("no error; status: %+v", w.Status())
		return nil
	}
}

// untilPort takes sets until one has the gateway's port: a change may be seen in steps, each of them whole.
func (w *watched) untilPort(t *testing.T, port uint16) *policies.Set {
	t.Helper()
	for {
		if s := w.nextSet(t); s.Gateways[0].Spec.Listeners[0].Port == port {
			return s
		}
	}
}

const rest = `apiVersion: meridian.dev/v1alpha1
kind: Region
metadata: {name: fra}
spec: {cloud: aws/eu-central-1}
---
apiVersion: meridian.dev/v1alpha1
kind: Cluster
metadata: {name: fra-1}
spec: {region: fra}
---
apiVersion: meridian.dev/v1alpha1
kind: Service
metadata: {name: llama}
spec:
  models: [llama]
  pools: [{cluster: fra-1, endpoints: [{address: 127.1.0.1, port: 8000}]}]
`

func gateway(port string) string {
	return "apiVersion: meridian.dev/v1alpha1\nkind: Gateway\nmetadata: {name: edge}\nspec: {listeners: [{name: http, port: " + port + "}]}\n"
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replace writes as editors do: beside the file, and then over it.
func replace(t *testing.T, dir, name, text string) {
	t.Helper()
	write(t, dir, "."+name+".swp", text)
	if err := os.Rename(filepath.Join(dir, "."+name+".swp"), filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func policyFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "rest.yaml", rest)
	write(t, dir, "gateway.yml", gateway("8080"))
	return dir
}

func TestAChangeGivesANewSet(t *testing.T) {
	for name, watch := range map[string]func(*testing.T, string) *watched{"by events": byEvents, "by polls": byPolls} {
		t.Run(name, func(t *testing.T) {
			dir := policyFolder(t)
			w := watch(t, dir)
			w.untilPort(t, 8080)
			write(t, dir, "gateway.yml", gateway("8081"))
			w.untilPort(t, 8081)
			replace(t, dir, "gateway.yml", gateway("8082"))
			set := w.untilPort(t, 8082)
			if s := w.Status(); s.Set != set || s.Err != nil || s.Loaded.IsZero() {
				t.Errorf("status %+v, want the set that was given and no error", s)
			}
		})
	}
}

// A file is half-written, and then whole: the good set stays in force meanwhile, and status says why.
func TestABrokenFileChangesNothing(t *testing.T) {
	dir := policyFolder(t)
	w := byEvents(t, dir)
	first := w.nextSet(t)
	for _, broken := range []string{gateway("8081")[:90], "", gateway("80810")} {
		replace(t, dir, "gateway.yml", broken)
		var diagnostics policies.Diagnostics
		if err := w.nextError(t); !errors.As(err, &diagnostics) || filepath.Base(diagnostics[0].File) != "gateway.yml" {
			t.Errorf("%q: error %v, want diagnostics of gateway.yml", broken, err)
		}
		if s := w.Status(); s.Set != first || s.Err == nil {
			t.Errorf("%q: status %+v, want the first set and an error", broken, s)
		}
	}
	replace(t, dir, "gateway.yml", gateway("8081"))
	w.untilPort(t, 8081)
	if s := w.Status(); s.Err != nil {
		t.Errorf("the error stays: %v", s.Err)
	}
}

// Going back to what is in force ends the error without a new set.
func TestARevertedMistakeIsForgotten(t *testing.T) {
	dir := policyFolder(t)
	w := byEvents(t, dir)
	first := w.nextSet(t)
	replace(t, dir, "gateway.yml", gateway("80810"))
	w.nextError(t)
	replace(t, dir, "gateway.yml", gateway("8080"))
	eventually(t, func() bool { return w.Status().Err == nil })
	if s := w.Status(); s.Set != first || len(w.sets) > 0 {
		t.Errorf("status %+v and %d sets, want the first set alone", s, len(w.sets))
	}
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it never came true")
		}
	}
}

// Kubernetes mounts a ConfigMap as links through ..data, and changes all of its files by renaming that one link.
func TestAKubernetesSwapIsOneChange(t *testing.T) {
	dir := t.TempDir()
	mount := func(version, port string) {
		write(t, dir, version+"/gateway.yaml", gateway(port))
		write(t, dir, version+"/rest.yaml", rest)
		if err := errors.Join(os.Symlink(version, filepath.Join(dir, "..data_tmp")),
			os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data"))); err != nil {
			t.Fatal(err)
		}
	}
	mount("..2026_01", "8080")
	for _, name := range []string{"gateway.yaml", "rest.yaml"} {
		if err := os.Symlink("..data/"+name, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	w := byEvents(t, dir)
	w.untilPort(t, 8080)
	mount("..2026_02", "8081")
	if err := os.RemoveAll(filepath.Join(dir, "..2026_01")); err != nil {
		t.Fatal(err)
	}
	w.untilPort(t, 8081)
	if len(w.errors) > 0 {
		t.Errorf("a swap gave an error: %v", <-w.errors)
	}
}

func TestSubFoldersAreWatchedToo(t *testing.T) {
	dir := policyFolder(t)
	w := byEvents(t, dir)
	w.untilPort(t, 8080)
	write(t, dir, "eu/more.yaml", strings.ReplaceAll(gateway("9090"), "edge", "another"))
	w.nextError(t) // two gateways select the same proxies
	write(t, dir, "eu/more.yaml", strings.NewReplacer("edge", "another", "spec: {", "spec: {proxies: {roles: [sidecar]}, ").Replace(gateway("9090")))
	if set := w.nextSet(t); len(set.Gateways) != 2 {
		t.Errorf("%d gateways, want that of the sub-folder too", len(set.Gateways))
	}
}

func TestAFolderMayAppearLaterAndBeReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	w := start(t, dir, Config{Poll: 10 * time.Millisecond}, nil)
	if err := w.nextError(t); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("error %v, want that there is no such folder", err)
	}
	write(t, dir, "all.yaml", rest+"---\n"+gateway("8080"))
	w.untilPort(t, 8080)
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "all.yaml", rest+"---\n"+gateway("8081"))
	w.untilPort(t, 8081)
	write(t, dir, "all.yaml", rest+"---\n"+gateway("8082"))
	w.untilPort(t, 8082)
}

// A writer that never pauses can't keep changes from being seen.
func TestConstantWritingIsReadInBetween(t *testing.T) {
	d := newDebounce(time.Second)
	defer d.stop()
	begin := time.Unix(0, 0)
	d.begin(begin)
	if !d.since.Equal(begin) {
		t.Fatal("the wait did not begin")
	}
	d.begin(begin.Add(2 * mostQuiets * time.Second))
	select {
	case <-d.over():
	case <-time.After(patience):
		t.Fatal("the wait goes on")
	}
	if d.end(); !d.since.IsZero() {
		t.Error("the wait did not end")
	}
}

func TestNewRefusesAnIncompleteConfig(t *testing.T) {
	set := func(*policies.Set) {}
	for name, c := range map[string]Config{
		"no folder": {OnSet: set}, "nobody to tell": {Dir: "x"}, "negative": {Dir: "x", OnSet: set, Poll: -1},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
