package modelserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/meridian-mesh/meridian/internal/testbed/modelserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a fast server until the test ends. What c leaves zero is chosen here.
func start(t *testing.T, c modelserver.Config) *modelserver.Server {
	t.Helper()
	c.Address = netip.MustParseAddrPort("127.0.0.1:0")
	c.Name = "gpu-1"
	if c.Models == nil {
		c.Models = []string{"llama", "qwen"}
	}
	if c.Speed == 0 {
		c.Speed = 20
	}
	s, err := modelserver.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

func url(s *modelserver.Server, path string) string { return "http://" + s.Addr().String() + path }

// post sends a body. The response is closed with the test.
func post(t *testing.T, s *modelserver.Server, path, body string) (*http.Response, error) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url(s, path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err == nil {
		t.Cleanup(func() { r.Body.Close() })
	}
	return r, err
}

// to is where a body is sent, and the status that is wanted.
type to struct {
	path   string
	status int
}

// postJSON sends a body, wants a status, and reads the answer into a value.
func postJSON(t *testing.T, s *modelserver.Server, to to, body string, into any) *http.Response {
	t.Helper()
	r, err := post(t, s, to.path, body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.StatusCode != to.status {
		t.Fatalf("status %d, want %d: %s", r.StatusCode, to.status, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return r
}

// get reads a page.
func get(t *testing.T, s *modelserver.Server, path string) (int, string) {
	t.Helper()
	r, err := http.Get(url(s, path))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// event is one server-sent event.
type event struct{ name, data string }

// events reads server-sent events to the end.
func events(t *testing.T, r io.Reader) ([]event, error) {
	t.Helper()
	var all []event
	var e event
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == "":
			all, e = append(all, e), event{}
		case strings.HasPrefix(line, "event: "):
			e.name = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			e.data = line[len("data: "):]
		default:
			t.Errorf("a line that is none of server-sent events: %q", line)
		}
	}
	return all, lines.Err()
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// answer is what the tests read of a chat or completion, whole or a chunk.
type answer struct {
	ID, Object, Model string
	Fingerprint       string `json:"system_fingerprint"`
	Choices           []struct {
		Message, Delta struct{ Role, Content string }
		Text           string
		FinishReason   string `json:"finish_reason"`
	}
	Usage *usage
}

const (
	chatPath = "/v1/chat/completions"
	hello    = `{"model":"llama","messages":[{"role":"user","content":"12345678"}],"max_tokens":5}`
)

func TestChat(t *testing.T) {
	s := start(t, modelserver.Config{})
	var a answer
	r := postJSON(t, s, to{chatPath, 200}, hello, &a)
	if a.Object != "chat.completion" || a.Model != "llama" || !strings.HasPrefix(a.ID, "chatcmpl-") {
		t.Errorf("got %+v", a)
	}
	if a.Fingerprint != "gpu-1" || r.Header.Get("x-served-by") != "gpu-1" {
		t.Errorf("served by %q, %q; want gpu-1", a.Fingerprint, r.Header.Get("x-served-by"))
	}
	c := a.Choices[0]
	if c.Message.Role != "assistant" || len(strings.Fields(c.Message.Content)) != 5 || c.FinishReason != "length" {
		t.Errorf("got %+v; want 5 words, ended by length", c)
	}
	if *a.Usage != (usage{2, 5, 7}) {
		t.Errorf("usage %+v, want 2, 5, 7", *a.Usage)
	}
	if s.Served() != 1 || s.Bytes() != int64(len(hello)) {
		t.Errorf("served %d and %d bytes, want 1 and %d", s.Served(), s.Bytes(), len(hello))
	}
}

func TestContentIsTheSameEachTimeAndStreamed(t *testing.T) {
	s := start(t, modelserver.Config{OutputTokens: 7})
	const body = `{"model":"llama","messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"hi"}]}]`
	var first, second answer
	postJSON(t, s, to{chatPath, 200}, body+"}", &first)
	postJSON(t, s, to{chatPath, 200}, body+"}", &second)
	whole := first.Choices[0].Message.Content
	if second.Choices[0].Message.Content != whole || first.Choices[0].FinishReason != "stop" {
		t.Errorf("%+v and %+v differ, or were not stopped", first, second)
	}
	r, err := post(t, s, chatPath, body+`,"stream":true,"stream_options":{"include_usage":true}}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		t.Errorf("content type %q", got)
	}
	all, err := events(t, r.Body)
	if err != nil || len(all) != 1+7+2 || all[len(all)-1].data != "[DONE]" {
		t.Fatalf("got %d events, %v: %v", len(all), err, all)
	}
	var streamed, reason string
	for _, e := range all[:8] {
		a := chunk(t, e)
		streamed += a.Choices[0].Delta.Content
		reason += a.Choices[0].FinishReason
	}
	if streamed != whole || reason != "stop" {
		t.Errorf("streamed %q, ended by %q; want %q", streamed, reason, whole)
	}
	if last := chunk(t, all[8]); len(last.Choices) != 0 || last.Usage.Completion != 7 {
		t.Errorf("the chunk with the usage is %+v", last)
	}
}

func chunk(t *testing.T, e event) (a answer) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.data), &a); err != nil {
		t.Fatalf("%v in %q", err, e.data)
	}
	if a.Object != "chat.completion.chunk" {
		t.Errorf("object %q", a.Object)
	}
	return a
}

func TestCompletions(t *testing.T) {
	s := start(t, modelserver.Config{})
	for _, prompt := range []string{`"12345678"`, `["1234","5678"]`, `[1,2]`, `[[1],[2]]`} {
		var a answer
		postJSON(t, s, to{"/v1/completions", 200}, `{"model":"qwen","prompt":`+prompt+`,"max_tokens":3}`, &a)
		if a.Object != "text_completion" || len(strings.Fields(a.Choices[0].Text)) != 3 || *a.Usage != (usage{2, 3, 5}) {
			t.Errorf("prompt %s: got %+v, %+v", prompt, a, a.Usage)
		}
	}
	r, err := post(t, s, "/v1/completions", `{"model":"qwen","prompt":"x","max_tokens":3,"stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := events(t, r.Body); err != nil || len(all) != 4 || all[3].data != "[DONE]" {
		t.Errorf("got %v, %v", all, err)
	}
}

func TestResponses(t *testing.T) {
	s := start(t, modelserver.Config{})
	var a struct {
		Object, Status string
		Incomplete     struct{ Reason string } `json:"incomplete_details"`
		Output         []struct {
			Type    string
			Content []struct{ Type, Text string }
		}
		Usage struct {
			Output int `json:"output_tokens"`
		}
	}
	const body = `{"model":"llama","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}],"max_output_tokens":4`
	postJSON(t, s, to{"/v1/responses", 200}, body+"}", &a)
	text := a.Output[0].Content[0].Text
	if a.Object != "response" || a.Status != "incomplete" || a.Incomplete.Reason != "max_output_tokens" ||
		len(strings.Fields(text)) != 4 || a.Usage.Output != 4 {
		t.Errorf("got %+v", a)
	}
	r, err := post(t, s, "/v1/responses", body+`,"stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := events(t, r.Body)
	if err != nil || len(all) != 4+4+4 || all[0].name != "response.created" || all[11].name != "response.incomplete" {
		t.Fatalf("got %v, %v", all, err)
	}
	streamed := ""
	for i, e := range all {
		var data struct {
			Type, Delta string
			Sequence    int `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(e.data), &data); err != nil || data.Type != e.name || data.Sequence != i {
			t.Errorf("event %d: %v, %v", i, e, err)
		}
		streamed += data.Delta
	}
	if streamed != text {
		t.Errorf("streamed %q, want %q", streamed, text)
	}
}

func TestEmbeddings(t *testing.T) {
	s := start(t, modelserver.Config{})
	var floats struct {
		Data []struct{ Embedding []float64 }
	}
	postJSON(t, s, to{"/v1/embeddings", 200}, `{"model":"llama","input":["a","b","a"],"dimensions":8}`, &floats)
	if len(floats.Data) != 3 || len(floats.Data[0].Embedding) != 8 {
		t.Fatalf("got %+v", floats)
	}
	if a, b, c := floats.Data[0].Embedding[0], floats.Data[1].Embedding[0], floats.Data[2].Embedding[0]; a == b || a != c {
		t.Errorf("a is %v, b %v, a again %v", a, b, c)
	}
	var encoded struct{ Data []struct{ Embedding []byte } }
	postJSON(t, s, to{"/v1/embeddings", 200}, `{"model":"llama","input":"a","dimensions":8,"encoding_format":"base64"}`, &encoded)
	if len(encoded.Data[0].Embedding) != 32 {
		t.Errorf("got %d bytes, want 32", len(encoded.Data[0].Embedding))
	}
}

func TestErrorsAreShapedAsOpenAIs(t *testing.T) {
	s := start(t, modelserver.Config{KVBlocks: 100, BlockSize: 16})
	for _, c := range []struct {
		name, path, body string
		status           int
		says             string
	}{
		{"unknown model", chatPath, `{"model":"gpt","messages":[{"content":"x"}]}`, 404, "`gpt` does not exist"},
		{"no JSON", chatPath, `{"model":`, 400, "parse the body"},
		{"no messages", chatPath, `{"model":"llama"}`, 400, "messages"},
		{"no prompt", "/v1/completions", `{"model":"llama"}`, 400, "prompt"},
		{"no input", "/v1/responses", `{"model":"llama"}`, 400, "input"},
		{"no input to embed", "/v1/embeddings", `{"model":"llama"}`, 400, "input"},
		{"a limit of none", chatPath, `{"model":"llama","messages":[{"content":"x"}],"max_tokens":0}`, 400, "at least 1"},
		{"too long", chatPath, `{"model":"llama","messages":[{"content":"x"}],"max_tokens":1600}`, 400, "maximum context length is 1600"},
		{"text that is none", chatPath, `{"model":"llama","messages":[{"content":true}]}`, 400, "expected text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e struct {
				Error struct {
					Message, Type string
					Code          int
				}
			}
			postJSON(t, s, to{c.path, c.status}, c.body, &e)
			if e.Error.Code != c.status || e.Error.Type == "" || !strings.Contains(e.Error.Message, c.says) {
				t.Errorf("got %+v; want it to say %q", e.Error, c.says)
			}
		})
	}
	if s.Served() != 0 {
		t.Errorf("served %d, want 0", s.Served())
	}
}

func TestALargePrompt(t *testing.T) {
	s := start(t, modelserver.Config{KVBlocks: 1 << 20, PrefillRate: 1e9, StepTokens: 1 << 23})
	body := `{"model":"llama","max_tokens":1,"messages":[{"content":"` + strings.Repeat("x", 4<<20) + `"}]}`
	var a answer
	postJSON(t, s, to{chatPath, 200}, body, &a)
	if a.Usage.Prompt != 1<<20 || s.Bytes() != int64(len(body)) {
		t.Errorf("got %d tokens and %d bytes", a.Usage.Prompt, s.Bytes())
	}
}

func TestModelsHealthVersion(t *testing.T) {
	s := start(t, modelserver.Config{})
	if status, text := get(t, s, "/v1/models"); status != 200 || !strings.Contains(text, `"id":"qwen"`) {
		t.Errorf("models: %d %s", status, text)
	}
	if status, _ := get(t, s, "/health"); status != 200 {
		t.Errorf("health: %d", status)
	}
	if status, text := get(t, s, "/version"); status != 200 || !strings.Contains(text, "version") {
		t.Errorf("version: %d %s", status, text)
	}
}

func TestMetricsHaveVLLMsNames(t *testing.T) {
	s := start(t, modelserver.Config{KVBlocks: 1234})
	postJSON(t, s, to{chatPath, 200}, hello, new(answer))
	_, text := get(t, s, "/metrics")
	for _, line := range []string{
		`vllm:num_requests_running{engine="0",model_name="llama"} 0`,
		`vllm:num_requests_waiting{engine="0",model_name="llama"} 0`,
		`vllm:kv_cache_usage_perc{engine="0",model_name="llama"} 0`,
		`vllm:num_preemptions_total{engine="0",model_name="llama"} 0`,
		`vllm:prompt_tokens_total{engine="0",model_name="llama"} 2`,
		`vllm:generation_tokens_total{engine="0",model_name="llama"} 5`,
		`vllm:time_to_first_token_seconds_count{engine="0",model_name="llama"} 1`,
		`vllm:time_per_output_token_seconds_count{engine="0",model_name="llama"} 1`,
		`vllm:e2e_request_latency_seconds_count{engine="0",model_name="llama"} 1`,
		`vllm:request_success_total{engine="0",finished_reason="length",model_name="llama"} 1`,
		`vllm:cache_config_info{block_size="16",cache_dtype="auto",enable_prefix_caching="False",engine="0",num_gpu_blocks="1234"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
}

func TestLegacyMetrics(t *testing.T) {
	s := start(t, modelserver.Config{LegacyMetrics: true})
	_, text := get(t, s, "/metrics")
	if !strings.Contains(text, "vllm:gpu_cache_usage_perc{") || strings.Contains(text, "vllm:kv_cache_usage_perc{") {
		t.Errorf("got\n%s", text)
	}
}

func TestLoadIsReportedWhenAskedFor(t *testing.T) {
	s := start(t, modelserver.Config{})
	for format, want := range map[string]string{"": "", "TEXT": "TEXT named_metrics.kv_cache_usage_perc=", "json": `JSON {"named_metrics":`} {
		q, err := http.NewRequest(http.MethodPost, url(s, chatPath), bytes.NewReader([]byte(hello)))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("endpoint-load-metrics-format", format)
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if got := r.Header.Get("endpoint-load-metrics"); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("format %q: got %q, want %q", format, got, want)
		}
	}
}

func TestRequestsAreRemembered(t *testing.T) {
	s := start(t, modelserver.Config{Keep: 2})
	for _, model := range []string{"llama", "qwen", "gpt"} {
		if _, err := post(t, s, chatPath, `{"model":"`+model+`","messages":[{"content":"x"}],"max_tokens":1}`); err != nil {
			t.Fatal(err)
		}
	}
	got := s.Requests()
	if len(got) != 2 || got[0].Model != "qwen" || got[1].Model != "gpt" {
		t.Fatalf("got %+v; want qwen and gpt", got)
	}
	if q := got[0]; q.Path != chatPath || q.Bytes == 0 || q.Header.Get("User-Agent") == "" || !q.Client.Addr().IsLoopback() {
		t.Errorf("got %+v", q)
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := modelserver.Config{Address: netip.MustParseAddrPort("127.0.0.1:0"), Name: "n", Models: []string{"m"}}
	for name, change := range map[string]func(*modelserver.Config){
		"no name":           func(c *modelserver.Config) { c.Name = "" },
		"no model":          func(c *modelserver.Config) { c.Models = nil },
		"an empty model":    func(c *modelserver.Config) { c.Models = []string{""} },
		"negative slots":    func(c *modelserver.Config) { c.Slots = -1 },
		"an open address":   func(c *modelserver.Config) { c.Address = netip.MustParseAddrPort("0.0.0.0:0") },
		"no address at all": func(c *modelserver.Config) { c.Address = netip.AddrPort{} },
	} {
		c := good
		change(&c)
		if s, err := modelserver.New(c); err == nil {
			t.Errorf("%s: no error", name)
			_ = s.Kill()
		}
	}
}
