package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/meridian-mesh/meridian/health/internal/fetch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server for the test. It says how many connections it was asked over.
func serve(t *testing.T, handler http.HandlerFunc) (netip.AddrPort, *atomic.Int32) {
	t.Helper()
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String()), &connections
}

func get(t *testing.T, c *fetch.Client, address netip.AddrPort, timeout time.Duration) (string, error) {
	t.Helper()
	var body []byte
	err := c.Get(t.Context(), fetch.Request{Address: address, Path: "/x?y=z", Timeout: timeout}, func(r io.Reader) (err error) {
		body, err = io.ReadAll(r)
		return err
	})
	return string(body), err
}

func newClient(t *testing.T) *fetch.Client {
	c := fetch.New()
	t.Cleanup(c.Close)
	return c
}

func TestGetKeepsOneConnection(t *testing.T) {
	address, connections := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.String(), r.UserAgent()) })
	c := newClient(t)
	for range 3 {
		if body, err := get(t, c, address, time.Minute); err != nil || body != "/x?y=zmeridian" {
			t.Fatalf("the answer is %q, %v", body, err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("three requests took %d connections", n)
	}
}

func TestGetAfterTheServerCameBack(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	c := newClient(t)
	for range 2 {
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.NotFoundHandler()}}
		server.Start()
		if _, err := get(t, c, netip.MustParseAddrPort(address), time.Minute); err == nil || err.Error() != "status 404" {
			t.Errorf("the error is %v", err)
		}
		server.Close()
		if listener, err = net.Listen("tcp", address); err != nil {
			t.Fatal(err)
		}
	}
	listener.Close()
}

func TestGetRefusesWhatIsNoAnswer(t *testing.T) {
	hang := make(chan struct{})
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		cause   string
	}{
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "status 302"},
		{"an error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "status 503"},
		{"no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "status 204"},
		{"silence", func(http.ResponseWriter, *http.Request) { <-hang }, "no answer within 50ms"},
		{
			"silence in the middle of the body",
			func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, "half")
				w.(http.Flusher).Flush()
				<-hang
			},
			"no answer within 50ms",
		},
		{
			"an end in the middle of the body",
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100")
				fmt.Fprint(w, "half")
			},
			"the connection was closed before the end of the answer",
		},
		{"an end without a word", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "the connection was closed before the end of the answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, _ := serve(t, c.handler)
			client := newClient(t)
			timeout := time.Minute
			if strings.HasPrefix(c.cause, "no answer") {
				timeout = 50 * time.Millisecond
			}
			_, err := get(t, client, address, timeout)
			if got := fetch.Cause(err, timeout); got != c.cause {
				t.Errorf("the cause is %q, of %v", got, err)
			}
			if strings.HasPrefix(c.name, "silence") {
				hang <- struct{}{}
			}
		})
	}
}

func TestGetFromNobody(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := netip.MustParseAddrPort(listener.Addr().String())
	listener.Close()
	_, err = get(t, newClient(t), address, time.Minute)
	if got := fetch.Cause(err, time.Minute); got != "connection refused" {
		t.Errorf("the cause is %q, of %v", got, err)
	}
}

func TestCauseIsShort(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{fmt.Errorf("reading: %w", context.DeadlineExceeded), "no answer within 1s"},
		{&url.Error{Op: "Get", URL: "http://10.0.0.1:8000/metrics", Err: errors.New("malformed HTTP response")}, "malformed HTTP response"},
		{errors.New(strings.Repeat("x", 1000)), strings.Repeat("x", 200)},
	} {
		if got := fetch.Cause(c.err, time.Second); got != c.want {
			t.Errorf("the cause of %v is %q, want %q", c.err, got, c.want)
		}
	}
}
