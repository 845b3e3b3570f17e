package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/load"
	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
)

// underLoad sends requests to a gateway, at a rate, until the function that runs meanwhile has returned.
func underLoad(t *testing.T, at *mesh.Member, from string, rate float64, meanwhile func(observed <-chan load.Result)) *load.Report {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	observed, reports := make(chan load.Result, 100_000), make(chan *load.Report, 1)
	go func() {
		r, err := load.Run(ctx, load.Config{
			Targets: []string{"http://" + at.HTTP.String()}, Rate: rate, Duration: time.Minute, Model: mesh.Model, Prompt: "hello", Timeout: 20 * time.Second,
			Header: http.Header{"X-Forwarded-For": {from}}, Observe: func(r load.Result) { observed <- r },
		})
		if err != nil {
			t.Error(err)
		}
		reports <- r
	}()
	meanwhile(observed)
	stop()
	return <-reports
}

// await reads results until enough in a row were given by a cluster.
func await(t *testing.T, observed <-chan load.Result, cluster string, inARow int) {
	t.Helper()
	deadline, last := time.After(30*time.Second), load.Result{}
	for seen := 0; seen < inARow; {
		select {
		case last = <-observed:
			seen++
			if last.Answerer.Cluster != cluster {
				seen = 0
			}
		case <-deadline:
			t.Fatalf("%s did not take over, the last answer was %d by %q, %v", cluster, last.Status, last.Answerer.Cluster, last.Err)
		}
	}
}

func wantNoneFailed(t *testing.T, r *load.Report) {
	t.Helper()
	if r.Failed > 0 || r.OK < 100 {
		t.Errorf("%d of %d requests failed: statuses %v, errors %+v", r.Failed, r.Sent, r.Statuses, r.Errors)
	}
}

// Germans at iad-1 are served by dub-1, the nearest in the EU. When it is killed under 200 requests a second, gateway and
// servers, fra-1 serves them, and no caller notices.
func TestKilledClusterFailsNoRequest(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three(), Policies: euPinned})
	r := underLoad(t, m.Member("iad-1"), german, 200, func(observed <-chan load.Result) {
		await(t, observed, "dub-1", 200)
		if err := m.Member("dub-1").Kill(); err != nil {
			t.Error(err)
		}
		await(t, observed, "fra-1", 400)
	})
	wantNoneFailed(t, r)
	if n := r.Answered("iad-1"); n > 0 {
		t.Errorf("%d requests of Germans were served in Virginia", n)
	}
}

func TestKilledServersOfTheOwnClusterFailNoRequest(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three()})
	r := underLoad(t, m.Member("fra-1"), american, 200, func(observed <-chan load.Result) {
		await(t, observed, "fra-1", 200)
		if err := m.Member("fra-1").KillServers(); err != nil {
			t.Error(err)
		}
		await(t, observed, "dub-1", 200)
		if err := m.Member("fra-1").ReviveServers(); err != nil {
			t.Error(err)
		}
		await(t, observed, "fra-1", 200) // and it comes back, all of it
	})
	wantNoneFailed(t, r)
}

// A cluster whose processes are stopped accepts connections and answers nothing. Requests that begin two seconds later
// must not wait for it any more, and those under way are retried elsewhere.
func TestSilentClusterIsLeftWithinTwoSeconds(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three(), Policies: euPinned})
	var silent time.Duration
	r := underLoad(t, m.Member("iad-1"), german, 100, func(observed <-chan load.Result) {
		await(t, observed, "dub-1", 100)
		silent = (<-observed).Done()
		if err := m.Member("dub-1").Silence(); err != nil {
			t.Error(err)
		}
		await(t, observed, "fra-1", 200)
		if err := m.Member("dub-1").Speak(); err != nil {
			t.Error(err)
		}
	})
	wantNoneFailed(t, r)
	t.Logf("the longest request took %v", r.Whole.Max)
	if last, ok := r.Cluster("dub-1"); ok && last.Last > silent+2*time.Second && r.Answered("fra-1") == 0 {
		t.Errorf("dub-1 was silent from %v on and is said to have answered until %v", silent, last.Last)
	}
	if r.Whole.Max > 5*time.Second {
		t.Errorf("a request waited %v for a silent cluster", r.Whole.Max)
	}
}

func TestPinnedRequestsAreRefusedWhenTheirBoundaryIsDownAndNothingLeaves(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three(), Policies: euPinned})
	for _, name := range []string{"fra-1", "dub-1"} {
		if err := m.Member(name).KillServers(); err != nil {
			t.Fatal(err)
		}
	}
	before := m.Member("iad-1").Bytes()
	for range 20 {
		for _, at := range []string{"iad-1", "fra-1"} {
			if a := send(t, chat(m.Member(at), german)); a.status != 503 || a.code(t) != "residency_unsatisfiable" {
				t.Errorf("at %s: %d by %q: %s", at, a.status, a.cluster, a.body)
			}
		}
	}
	if after := m.Member("iad-1").Bytes(); after != before {
		t.Errorf("%d bytes of Germans' prompts reached Virginia", after-before)
	}
	if a := send(t, chat(m.Member("fra-1"), american)); a.status != 200 || a.cluster != "iad-1" {
		t.Errorf("an American at fra-1, who may leave: %d by %q: %s", a.status, a.cluster, a.body)
	}
	if err := m.Member("fra-1").ReviveServers(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := m.Until(ctx, "Germans are served again", func() bool {
		a, err := try(ctx, chat(m.Member("iad-1"), german))
		return err == nil && a.status == 200 && a.cluster == "fra-1"
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPoliciesAreReloadedAndABrokenFolderChangesNothing(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three()})
	at := m.Member("iad-1")
	if a := send(t, chat(at, german)); a.cluster != "iad-1" {
		t.Fatalf("before: %d by %q", a.status, a.cluster)
	}
	rule := filepath.Join(m.PolicyDir(), "residency.yaml")
	write(t, rule, euPinned)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	served := func(by string) func() bool {
		return func() bool {
			a, err := try(ctx, chat(at, german))
			return err == nil && a.cluster == by
		}
	}
	if err := m.Until(ctx, "the rule holds", served("dub-1")); err != nil {
		t.Fatal(err)
	}
	write(t, rule, strings.Replace(euPinned, "within", "witin", 1))
	if err := m.Until(ctx, "status says why", func() bool { return strings.Contains(m.Plane().Status().Policies.Error, `did you mean "within"`) }); err != nil {
		t.Fatalf("%v: %q", err, m.Plane().Status().Policies.Error)
	}
	for range 20 {
		if a := send(t, chat(at, german)); a.cluster != "dub-1" {
			t.Fatalf("the broken file changed something: %d by %q", a.status, a.cluster)
		}
	}
	if err := os.Remove(rule); err != nil {
		t.Fatal(err)
	}
	if err := m.Until(ctx, "the rule is gone", served("iad-1")); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// A control plane that is gone takes nothing with it: Envoys go on with what they have, and react by themselves.
func TestGatewaysGoOnWithoutControlPlane(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three(), Policies: euPinned})
	m.StopPlane()
	if a := send(t, chat(m.Member("iad-1"), german)); a.status != 200 || a.cluster != "dub-1" {
		t.Errorf("without control plane: %d by %q: %s", a.status, a.cluster, a.body)
	}
	if err := m.Member("dub-1").Kill(); err != nil {
		t.Fatal(err)
	}
	if a := send(t, chat(m.Member("iad-1"), german)); a.status != 200 || a.cluster != "fra-1" {
		t.Errorf("and without dub-1: %d by %q: %s", a.status, a.cluster, a.body)
	}
}
