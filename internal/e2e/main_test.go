package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"log/slog"

	"go.uber.org/goleak"

	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
	"github.com/meridian-mesh/meridian/internal/testbed/modelserver"
	"github.com/meridian-mesh/meridian/internal/testbed/netns"
)

// podAddresses are what servers that Kubernetes lists have: it takes no loopback ones.
var podAddresses = netip.MustParsePrefix("10.0.0.1/8")

// TestMain runs the tests in a network namespace of their own.
func TestMain(m *testing.M) {
	code, done, err := netns.Enter(podAddresses)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests on Kubernetes are skipped:", err)
	} else if done {
		os.Exit(code)
	}
	isolated = err == nil
	goleak.VerifyTestMain(m)
}

// isolated says whether podAddresses are local.
var isolated bool

// The demo database's clients.
const (
	german   = "192.0.2.7"
	american = "198.51.100.7"
	unknown  = "198.18.0.7"
)

// euPinned keeps people in the EU inside it.
const euPinned = `---
apiVersion: meridian.dev/v1alpha1
kind: Residency
metadata: {name: eu-people}
spec: {match: {countries: [EU], services: [llama]}, within: [EU]}
`

// three are three clusters in three regions on two continents.
func three() []mesh.Cluster {
	return []mesh.Cluster{
		{Name: "fra-1", Region: "frankfurt", Cloud: "aws/eu-central-1", Network: 110, Servers: 2},
		{Name: "dub-1", Region: "dublin", Cloud: "aws/eu-west-1", Network: 120, Servers: 2},
		{Name: "iad-1", Region: "virginia", Cloud: "aws/us-east-1", Network: 130, Servers: 2},
	}
}

// start starts a mesh that ends with the test.
func start(t *testing.T, config mesh.Config) *mesh.Mesh {
	t.Helper()
	if config.Server.OutputTokens == 0 {
		config.Server = modelserver.Config{OutputTokens: 4, TimePerOutputToken: 2 * time.Millisecond}
	}
	if os.Getenv("MERIDIAN_TEST_LOG") != "" {
		config.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	m, err := mesh.Start(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, c := range m.Members() {
				t.Logf("gateway %s: %s", c.Name, c.Gateway().Log())
			}
		}
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// answer is what a client sees.
type answer struct {
	status                  int
	header                  http.Header
	body                    string
	cluster, region, reason string
}

// code is the error code of an answer in the shape of the OpenAI API.
func (a answer) code(t *testing.T) string {
	t.Helper()
	var e struct {
		Error struct {
			Message, Type, Code string
		}
	}
	if err := json.Unmarshal([]byte(a.body), &e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
		t.Errorf("not an OpenAI error: %d %s", a.status, a.body)
	}
	if got := a.header.Get("content-type"); got != "application/json" {
		t.Errorf("content-type of an error is %q", got)
	}
	return e.Error.Code
}

// request is what a client sends.
type request struct {
	at     *mesh.Member
	path   string
	body   string
	client string
	header map[string]string
	method string
}

func chat(at *mesh.Member, client string) request {
	return request{at: at, path: "/v1/chat/completions", client: client, body: `{"model":"llama","messages":[{"role":"user","content":"hello"}]}`}
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}

func send(t *testing.T, r request) answer {
	t.Helper()
	a, err := try(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func try(ctx context.Context, r request) (answer, error) {
	if r.method == "" {
		r.method = http.MethodPost
	}
	q, err := http.NewRequestWithContext(ctx, r.method, "http://"+r.at.HTTP.String()+r.path, strings.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	q.Header.Set("content-type", "application/json")
	q.Header.Set("x-forwarded-for", r.client)
	for k, v := range r.header {
		if strings.EqualFold(k, "host") {
			q.Host = v
			continue
		}
		q.Header.Set(k, v)
	}
	response, err := client.Do(q)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	return answer{response.StatusCode, response.Header, string(body),
		response.Header.Get("x-meridian-cluster"), response.Header.Get("x-meridian-region"), response.Header.Get("x-meridian-reason")}, nil
}
