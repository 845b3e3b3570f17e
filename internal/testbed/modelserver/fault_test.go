package modelserver_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/modelserver"
)

// eventually polls until a condition holds, and fails the test if that takes unreasonably long.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 20_000 {
		if holds() {
			return
		}
		<-tick.C
	}
	t.Fatalf("never happened: %s", what)
}

func setFault(t *testing.T, s *modelserver.Server, f modelserver.Fault) {
	t.Helper()
	if err := s.SetFault(f); err != nil {
		t.Fatal(err)
	}
}

const longStream = `{"model":"llama","messages":[{"content":"x"}],"max_tokens":100000,"stream":true}`

func TestFaultStatus(t *testing.T) {
	s := start(t, modelserver.Config{})
	for _, status := range []int{429, 500, 503} {
		setFault(t, s, modelserver.Fault{Status: status})
		postJSON(t, s, to{chatPath, status}, hello, new(any))
		if got, _ := get(t, s, "/health"); got != 200 {
			t.Errorf("health is %d", got)
		}
	}
	setFault(t, s, modelserver.Fault{})
	postJSON(t, s, to{chatPath, 200}, hello, new(any))
}

func TestFaultUnhealthy(t *testing.T) {
	s := start(t, modelserver.Config{})
	setFault(t, s, modelserver.Fault{Unhealthy: true})
	if got, _ := get(t, s, "/health"); got != 503 {
		t.Errorf("health is %d, want 503", got)
	}
	postJSON(t, s, to{chatPath, 200}, hello, new(any))
}

func TestFaultRefuse(t *testing.T) {
	s := start(t, modelserver.Config{})
	r, err := post(t, s, chatPath, longStream)
	if err != nil {
		t.Fatal(err)
	}
	setFault(t, s, modelserver.Fault{Refuse: true})
	if _, err := io.Copy(io.Discard, r.Body); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("what was open ended with %v, want a reset", err)
	}
	if _, err := post(t, s, chatPath, hello); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a request gave %v, want it refused", err)
	}
	eventually(t, "the engine drops what nobody waits for", func() bool { return s.Running() == 0 })
	setFault(t, s, modelserver.Fault{})
	postJSON(t, s, to{chatPath, 200}, hello, new(any))
}

func TestFaultHang(t *testing.T) {
	s := start(t, modelserver.Config{})
	setFault(t, s, modelserver.Fault{Hang: true})
	for _, path := range []string{"/health", "/metrics"} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, url(s, path), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := http.DefaultClient.Do(q); err == nil {
			r.Body.Close()
			t.Errorf("%s is answered", path)
		}
		cancel()
	}
	answered := make(chan int, 1)
	go func() {
		r, err := post(t, s, chatPath, hello)
		if err != nil {
			t.Errorf("a request that hung failed: %v", err)
			answered <- 0
			return
		}
		answered <- r.StatusCode
	}()
	eventually(t, "the request is there", func() bool { return s.Bytes() == int64(len(hello)) })
	select {
	case <-answered:
		t.Error("answered while hanging")
	default:
	}
	setFault(t, s, modelserver.Fault{})
	if got := <-answered; got != 200 {
		t.Errorf("status %d once it is lifted, want 200", got)
	}
}

func TestFaultResetMidStream(t *testing.T) {
	s := start(t, modelserver.Config{})
	setFault(t, s, modelserver.Fault{ResetAfterChunks: 3})
	r, err := post(t, s, "/v1/completions", `{"model":"llama","prompt":"x","max_tokens":100,"stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := events(t, r.Body)
	if len(all) != 3 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %d events and %v, want 3 and a reset", len(all), err)
	}
	if _, err := post(t, s, chatPath, hello); err == nil {
		t.Error("an answer that is not streamed was not reset")
	}
	if s.Served() != 0 {
		t.Errorf("served %d, want 0", s.Served())
	}
}

func TestFaultsThatMakeNoSense(t *testing.T) {
	s := start(t, modelserver.Config{})
	for _, f := range []modelserver.Fault{{Status: 200}, {Status: 700}, {ResetAfterChunks: -1}, {Slow: -1}} {
		if err := s.SetFault(f); err == nil {
			t.Errorf("%+v: no error", f)
		}
	}
}

func TestKill(t *testing.T) {
	s := start(t, modelserver.Config{})
	r, err := post(t, s, chatPath, longStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r.Body); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("what was open ended with %v, want a reset", err)
	}
	if _, err := post(t, s, chatPath, hello); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a request gave %v, want it refused", err)
	}
	if err := s.SetFault(modelserver.Fault{}); err == nil {
		t.Error("a fault on a dead server: no error")
	}
}

func TestKillBeforeRun(t *testing.T) {
	s, err := modelserver.New(modelserver.Config{
		Address: netip.MustParseAddrPort("127.0.0.1:0"), Name: "n", Models: []string{"m"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestQueueAndItsLimit(t *testing.T) {
	s := start(t, modelserver.Config{Slots: 2, MaxQueue: 3, Speed: 1})
	cancelled, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 5)
	for range 5 {
		go func() {
			q, err := http.NewRequestWithContext(cancelled, http.MethodPost, url(s, chatPath), strings.NewReader(longStream))
			if err == nil {
				var r *http.Response
				if r, err = http.DefaultClient.Do(q); err == nil {
					_, err = io.Copy(io.Discard, r.Body)
					r.Body.Close()
				}
			}
			failed <- err
		}()
	}
	eventually(t, "two run and three wait", func() bool { return s.Running() == 2 && s.Waiting() == 3 })
	postJSON(t, s, to{chatPath, 429}, hello, new(any))
	cancel()
	for range 5 {
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	eventually(t, "callers that are gone leave the engine", func() bool { return s.Running()+s.Waiting() == 0 })
	postJSON(t, s, to{chatPath, 200}, hello, new(any))
}
