package load_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/meridian-mesh/meridian/internal/testbed/load"
	"github.com/meridian-mesh/meridian/internal/testbed/modelserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gateway answers as one of Meridian's would.
func gateway(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-meridian-cluster", "eu-1")
		w.Header().Set("x-meridian-region", "eu")
		w.Header().Set("x-meridian-reason", "nearest")
		handle(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func run(t *testing.T, c load.Config) *load.Report {
	t.Helper()
	r, err := load.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Sent != r.OK+r.Failed+r.Interrupted {
		t.Errorf("%d sent are not %d + %d + %d", r.Sent, r.OK, r.Failed, r.Interrupted)
	}
	return r
}

func TestOpenLoopSendsAtItsRate(t *testing.T) {
	var bodies sync.Map
	url := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies.Store(string(body), r.Header.Get("X-Forwarded-For"))
	})
	observed := 0
	r := run(t, load.Config{
		Targets: []string{url}, Rate: 500, Duration: 200 * time.Millisecond,
		Body:    func(n int) []byte { return []byte{byte('a' + n%2)} },
		Header:  http.Header{"X-Forwarded-For": {"192.0.2.1"}},
		Observe: func(load.Result) { observed++ },
	})
	if r.Sent != 100 || r.OK != 100 || observed != 100 {
		t.Errorf("sent %d, ok %d, observed %d, want 100: 500 a second for 200ms", r.Sent, r.OK, observed)
	}
	for _, body := range []string{"a", "b"} {
		if from, _ := bodies.Load(body); from != "192.0.2.1" {
			t.Errorf("body %q came from %v", body, from)
		}
	}
	if got := r.Answers[0]; len(r.Answers) != 1 || got.Cluster != "eu-1" || got.Region != "eu" || got.Reason != "nearest" {
		t.Errorf("answers %+v", r.Answers)
	}
	if c, _ := r.Cluster("eu-1"); c.OK != 100 || c.Last > r.Elapsed {
		t.Errorf("eu-1: %+v of %v", c, r.Elapsed)
	}
}

// A server that stalls for a while at one request in flight: in a closed loop one request would be slow; here all that
// were due meanwhile are.
func TestOpenLoopDoesNotOmitWhatWaited(t *testing.T) {
	const stall = 300 * time.Millisecond
	var once sync.Once
	url := gateway(t, func(http.ResponseWriter, *http.Request) {
		once.Do(func() { <-time.After(stall) })
	})
	r := run(t, load.Config{Targets: []string{url}, Rate: 100, Duration: stall, Concurrency: 1, Model: "m"})
	if r.OK != 30 {
		t.Fatalf("ok %d, want 30", r.OK)
	}
	if r.Whole.P50 < stall/4 {
		t.Errorf("the median is %v: the stall of %v is omitted", r.Whole.P50, stall)
	}
}

func TestClosedLoop(t *testing.T) {
	var now, most atomic.Int64
	full := make(chan struct{})
	url := gateway(t, func(http.ResponseWriter, *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
			if n == 4 {
				close(full)
			}
		}
		<-full
		now.Add(-1)
	})
	r := run(t, load.Config{Targets: []string{url}, Concurrency: 4, Requests: 40, Model: "m"})
	if r.OK != 40 || most.Load() != 4 {
		t.Errorf("ok %d with %d in flight, want 40 with 4", r.OK, most.Load())
	}
}

func TestTargetsTakeTurns(t *testing.T) {
	var first, second atomic.Int64
	urls := []string{
		gateway(t, func(http.ResponseWriter, *http.Request) { first.Add(1) }),
		gateway(t, func(http.ResponseWriter, *http.Request) { second.Add(1) }),
	}
	run(t, load.Config{Targets: urls, Requests: 10, Model: "m"})
	if first.Load() != 5 || second.Load() != 5 {
		t.Errorf("got %d and %d, want 5 each", first.Load(), second.Load())
	}
}

func TestFailures(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	hung := make(chan struct{})
	t.Cleanup(func() { close(hung) })
	for _, c := range []struct {
		name   string
		url    string
		stream bool
		kind   load.ErrorKind
		status int
	}{
		{name: "refused", url: closed.URL, kind: load.Refused},
		{name: "a status", url: gateway(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }), status: 429},
		{name: "no answer", url: gateway(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-hung:
			case <-r.Context().Done():
			}
		}), kind: load.Timeout},
		{name: "closed without an answer", url: gateway(t, func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}), kind: load.Truncated},
		{name: "a stream without its end", stream: true, url: gateway(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "data: {}\n\n")
		}), kind: load.Truncated, status: 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, load.Config{
				Targets: []string{c.url}, Requests: 2, Model: "m", Stream: c.stream, Timeout: 200 * time.Millisecond,
			})
			if r.Failed != 2 || len(r.Statuses) > 0 != (c.status != 0) || len(r.Errors) > 0 != (c.kind != "") {
				t.Fatalf("got %+v", r)
			}
			if c.status != 0 && r.Statuses[0] != (load.StatusCount{Status: c.status, Count: 2}) {
				t.Errorf("statuses %+v", r.Statuses)
			}
			if c.kind != "" && (r.Errors[0].Kind != c.kind || r.Errors[0].Count != 2 || r.Errors[0].Example == "") {
				t.Errorf("errors %+v", r.Errors)
			}
		})
	}
}

func TestTheEndOfTheContextIsNoFailure(t *testing.T) {
	arrived := make(chan struct{}, 8)
	url := gateway(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for range 3 {
			<-arrived
		}
		cancel()
	}()
	r, err := load.Run(ctx, load.Config{Targets: []string{url}, Concurrency: 3, Duration: time.Hour, Model: "m"})
	if err != nil || r.Interrupted != 3 || r.Failed != 0 {
		t.Errorf("got %+v, %v; want 3 interrupted", r, err)
	}
}

func TestAgainstAModelServer(t *testing.T) {
	s, err := modelserver.New(modelserver.Config{
		Address: netip.MustParseAddrPort("127.0.0.1:0"), Name: "gpu", Models: []string{"llama"}, Slots: 4, Speed: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	for _, path := range []string{"/v1/chat/completions", "/v1/responses"} {
		r := run(t, load.Config{
			Targets: []string{"http://" + s.Addr().String()}, Path: path, Concurrency: 8, Requests: 16, Stream: true,
			Body: func(int) []byte {
				return []byte(`{"model":"llama","messages":[{"content":"hi"}],"input":"hi","stream":true}`)
			},
		})
		if r.OK != 16 || r.FirstByte.P50 == 0 || r.FirstByte.P50 > r.Whole.P50 {
			t.Errorf("%s: got %+v", path, r)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestReportIsJSON(t *testing.T) {
	r := run(t, load.Config{Targets: []string{gateway(t, func(http.ResponseWriter, *http.Request) {})}, Requests: 3, Model: "m"})
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back load.Report
	if err := json.Unmarshal(text, &back); err != nil || back.OK != 3 || back.Answered("eu-1") != 3 {
		t.Errorf("got %+v, %v", back, err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := load.Config{Targets: []string{"http://127.0.0.1:1"}, Requests: 1, Model: "m"}
	for name, change := range map[string]func(*load.Config){
		"no target":     func(c *load.Config) { c.Targets = nil },
		"no end":        func(c *load.Config) { c.Requests = 0 },
		"no model":      func(c *load.Config) { c.Model = "" },
		"negative rate": func(c *load.Config) { c.Rate = -1 },
		"too many":      func(c *load.Config) { c.Requests = 1e9 },
	} {
		c := good
		change(&c)
		if _, err := load.Run(t.Context(), c); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
