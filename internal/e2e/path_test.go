package e2e

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
	"github.com/meridian-mesh/meridian/internal/testbed/modelserver"
)

func TestNearestClusterServes(t *testing.T) {
	for _, protocol := range []string{"delta", "state of the world"} {
		t.Run(protocol, func(t *testing.T) {
			m := start(t, mesh.Config{Clusters: three(), Policies: euPinned, StateOfTheWorld: protocol != "delta"})
			for _, c := range m.Members() {
				a := send(t, chat(c, american))
				if a.status != 200 || a.cluster != c.Name || a.region != c.Region || a.reason != "nearest" {
					t.Errorf("at %s: %d by %s in %s because %s: %s", c.Name, a.status, a.cluster, a.region, a.reason, a.body)
				}
			}
			if a := send(t, chat(m.Member("iad-1"), german)); a.status != 200 || a.cluster != "dub-1" {
				t.Errorf("a German at iad-1: %d by %s: %s", a.status, a.cluster, a.body)
			}
			for _, c := range m.Members() {
				if rejected, err := c.Gateway().Rejected(t.Context()); err != nil || len(rejected) > 0 {
					t.Errorf("the Envoy of %s has rejected configuration: %v, %v", c.Name, rejected, err)
				}
			}
		})
	}
}

func TestForgedHeadersCountForNothing(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three(), Policies: euPinned})
	forged := map[string]string{
		"x-meridian-country": "US", "X-Meridian-Country-Group": "*", "x-meridian-class": "any", "x-meridian-service": "other",
		"x-meridian-model": "no-such-model", "x-meridian-pinned": "", "x-meridian-anything": "1",
	}
	r := chat(m.Member("iad-1"), german)
	r.header = forged
	if a := send(t, r); a.status != 200 || a.cluster != "dub-1" {
		t.Errorf("a German with forged headers: %d by %s: %s", a.status, a.cluster, a.body)
	}
	r.client = unknown
	if a := send(t, r); a.status != 403 || a.code(t) != "unknown_location" {
		t.Errorf("an unknown client with a forged country: %d %s", a.status, a.body)
	}
	for _, c := range m.Members() {
		for _, s := range c.Servers() {
			for _, seen := range s.Requests() {
				for name := range seen.Header {
					if strings.HasPrefix(strings.ToLower(name), "x-meridian-") {
						t.Errorf("%s was shown the header %s", s.Name(), name)
					}
				}
			}
		}
	}
}

func TestTrustedHopsDecideWhoTheClientIs(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three(), Policies: euPinned})
	r := chat(m.Member("iad-1"), american+", "+german) // the last entry is what the trusted hop saw
	if a := send(t, r); a.cluster != "dub-1" {
		t.Errorf("a German who claims to be American: served by %s", a.cluster)
	}
}

func TestModelIsReadFromTheBodyAndFromThePath(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three()[:1], Service: `{models: [llama], paths: ["/models/{model}/"]}`})
	at := m.Member("fra-1")
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"llama","messages":[{"role":"user","content":"hi"}]}`,
		"/v1/completions":      `{"model":"llama","prompt":"hi"}`,
		"/v1/embeddings":       `{"model":"llama","input":"hi"}`,
		"/v1/responses":        `{"model":"llama","input":"hi"}`,
	} {
		if a := send(t, request{at: at, path: path, body: body, client: american}); a.status != 200 || a.cluster != "fra-1" {
			t.Errorf("%s: %d by %s: %s", path, a.status, a.cluster, a.body)
		}
	}
	// The model server does not know the path; that it says so itself shows where the request went.
	if a := send(t, request{at: at, path: "/models/llama/infer", client: american}); a.cluster != "fra-1" {
		t.Errorf("model in the path: %d by %q: %s", a.status, a.cluster, a.body)
	}
	if a := send(t, request{at: at, path: "/v1/models", method: http.MethodGet, client: american}); a.status != 200 || !strings.Contains(a.body, `"id":"llama"`) {
		t.Errorf("list of models: %d %s", a.status, a.body)
	}
}

func TestRefusalsSayWhatIsWrong(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three(), Policies: euPinned + `---
apiVersion: meridian.dev/v1alpha1
kind: Residency
metadata: {name: export-controlled}
spec: {match: {labels: [export]}, within: [US]}
`})
	at := m.Member("fra-1")
	const path = "/v1/chat/completions"
	for name, c := range map[string]struct {
		r      request
		status int
		code   string
	}{
		"unknown model":    {request{path: path, body: `{"model":"gpt-none"}`, client: american}, 404, "model_not_found"},
		"model by prefix":  {request{path: path, body: `{"model":"llama2"}`, client: american}, 404, "model_not_found"},
		"no model":         {request{path: path, body: `{"messages":[]}`, client: american}, 400, "invalid_request"},
		"model null":       {request{path: path, body: `{"model":null}`, client: american}, 400, "invalid_request"},
		"model an object":  {request{path: path, body: `{"model":{"a":1}}`, client: american}, 400, "invalid_request"},
		"model with CRLF":  {request{path: path, body: `{"model":"llama\r\nx-meridian-class: any"}`, client: american}, 400, "invalid_request"},
		"malformed":        {request{path: path, body: `{"model":"llama"`, client: american}, 400, "invalid_request"},
		"empty":            {request{path: path, client: american}, 400, "invalid_request"},
		"not JSON":         {request{path: path, body: "model=llama", client: american, header: map[string]string{"content-type": "text/plain"}}, 400, "invalid_request"},
		"unknown path":     {request{path: "/nothing", client: american}, 404, "not_found"},
		"unknown location": {request{path: path, body: `{"model":"llama"}`, client: unknown}, 403, "unknown_location"},
		"boundaries clash": {request{path: path, body: `{"model":"llama"}`, client: german, header: map[string]string{"x-data-label": "export"}}, 503, "residency_unsatisfiable"},
		"body over 16 MiB": {request{path: path, body: `{"model":"llama","p":"` + strings.Repeat("x", 16<<20) + `"}`, client: american}, 413, "request_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			c.r.at = at
			a := send(t, c.r)
			if a.status != c.status || a.code(t) != c.code {
				t.Errorf("%d %s, want %d %s: %.300s", a.status, a.code(t), c.status, c.code, a.body)
			}
			if name == "boundaries clash" && (!strings.Contains(a.body, "eu-people") || !strings.Contains(a.body, "export-controlled")) {
				t.Errorf("the answer does not say which policies clash: %s", a.body)
			}
		})
	}
}

func TestSixteenMebibytePromptPassesAndIsRetried(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three()[:2], Server: modelserver.Config{OutputTokens: 1, PrefillRate: 1e9, StepTokens: 1 << 23, KVBlocks: 1 << 20}})
	if err := m.Member("fra-1").KillServers(); err != nil {
		t.Fatal(err)
	}
	body := `{"model":"llama","max_tokens":1,"prompt":"` + strings.Repeat("x", 16<<20-100) + `"}`
	a := send(t, request{at: m.Member("fra-1"), path: "/v1/completions", body: body, client: american})
	if a.status != 200 || a.cluster != "dub-1" {
		t.Errorf("%d by %s: %.300s", a.status, a.cluster, a.body)
	}
}

func TestFullClusterSpillsWithinTheRequestAndAllFullSaysSo(t *testing.T) {
	m := start(t, mesh.Config{
		Clusters: []mesh.Cluster{
			{Name: "fra-1", Region: "frankfurt", Cloud: "aws/eu-central-1", Network: 110, Servers: 1},
			{Name: "dub-1", Region: "dublin", Cloud: "aws/eu-west-1", Network: 120, Servers: 1},
		},
		Service: "{models: [llama], capacity: {slotsPerEndpoint: 2}}",
		Server:  modelserver.Config{Slots: 64, OutputTokens: 400, TimePerOutputToken: 5 * time.Millisecond},
	})
	at := m.Member("fra-1")
	answers := make(chan answer, 8)
	for range cap(answers) {
		go func() {
			a, err := try(t.Context(), chat(at, american))
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	by, full := map[string]int{}, 0
	for range cap(answers) {
		a := <-answers
		if a.status == 429 {
			full++
			if a.code(t) != "no_capacity" || a.header.Get("retry-after") == "" {
				t.Errorf("%s, retry-after %q", a.body, a.header.Get("retry-after"))
			}
			continue
		}
		by[a.cluster]++
	}
	if by["fra-1"] != 2 || by["dub-1"] != 2 || full != 4 {
		t.Errorf("of 8 at once with 2 slots each: %v served, %d told to come back", by, full)
	}
}

func TestFailuresAreRetriedAtTheNextCluster(t *testing.T) {
	for name, fault := range map[string]modelserver.Fault{
		"connections refused": {Refuse: true}, "503": {Status: 503}, "429": {Status: 429},
	} {
		t.Run(name, func(t *testing.T) {
			m := start(t, mesh.Config{Clusters: three()})
			at := m.Member("fra-1")
			for _, s := range at.Servers() {
				if err := s.SetFault(fault); err != nil {
					t.Fatal(err)
				}
			}
			if a := send(t, chat(at, american)); a.status != 200 || a.cluster != "dub-1" {
				t.Errorf("%d by %s because %s: %s", a.status, a.cluster, a.reason, a.body)
			}
		})
	}
}

func TestStreamsPassUnbufferedAndAreNotRetriedOnceBegun(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three(), Server: modelserver.Config{OutputTokens: 200, TimePerOutputToken: 20 * time.Millisecond}})
	stream := func(at *mesh.Member) *http.Response {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at.HTTP.String()+"/v1/chat/completions",
			strings.NewReader(`{"model":"llama","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("content-type", "application/json")
		q.Header.Set("x-forwarded-for", american)
		response, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	// The whole takes four seconds: a first chunk while the server is still at work has not waited for the rest.
	response := stream(m.Member("fra-1"))
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
		t.Errorf("first chunk %q, %v", line, err)
	}
	running := 0
	for _, s := range m.Member("fra-1").Servers() {
		running += s.Running()
	}
	if running != 1 {
		t.Errorf("%d requests run after the first chunk has come, want the one", running)
	}
	for _, s := range m.Member("iad-1").Servers() {
		if err := s.SetFault(modelserver.Fault{ResetAfterChunks: 3}); err != nil {
			t.Fatal(err)
		}
	}
	cut := stream(m.Member("iad-1"))
	chunks, scanner := 0, bufio.NewScanner(cut.Body)
	for scanner.Scan() {
		if strings.HasPrefix(scanner.Text(), "data: ") {
			chunks++
		}
	}
	if scanner.Err() == nil || chunks == 0 || chunks > 6 {
		t.Errorf("%d chunks, then %v: want a few, then an error", chunks, scanner.Err())
	}
	if got := cut.Header.Get("x-meridian-cluster"); got != "iad-1" {
		t.Errorf("the stream that was cut is said to be by %s", got)
	}
}

func TestResponseHeadersCanBeSwitchedOff(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three()[:1], Gateway: "responseHeaders: false"})
	a := send(t, chat(m.Member("fra-1"), american))
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for name := range a.header {
		if strings.HasPrefix(strings.ToLower(name), "x-meridian-") {
			t.Errorf("header %s is there", name)
		}
	}
}

func TestLocationComesFromTheGeoServiceWhereThatIsPreferred(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three(), Policies: euPinned, GeoService: true})
	for client, want := range map[string]string{german: "dub-1", american: "iad-1"} {
		if a := send(t, chat(m.Member("iad-1"), client)); a.status != 200 || a.cluster != want {
			t.Errorf("%s: %d by %s, want %s: %s", client, a.status, a.cluster, want, a.body)
		}
	}
	r := chat(m.Member("iad-1"), unknown)
	r.header = map[string]string{"x-meridian-country": "US"}
	if a := send(t, r); a.status != 403 || a.code(t) != "unknown_location" {
		t.Errorf("unknown: %d %s", a.status, a.body)
	}
}

func TestFlatNetworkIsDialledDirectly(t *testing.T) {
	m := start(t, mesh.Config{Clusters: three(), Policies: euPinned, Flat: true})
	if a := send(t, chat(m.Member("iad-1"), german)); a.status != 200 || a.cluster != "dub-1" {
		t.Errorf("%d by %s: %s", a.status, a.cluster, a.body)
	}
	if err := m.Member("dub-1").KillServers(); err != nil {
		t.Fatal(err)
	}
	if a := send(t, chat(m.Member("iad-1"), german)); a.status != 200 || a.cluster != "fra-1" {
		t.Errorf("after a failure: %d by %s: %s", a.status, a.cluster, a.body)
	}
}
