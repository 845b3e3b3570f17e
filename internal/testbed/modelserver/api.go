package modelserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
)

// maxBody is the largest request that is read.
const maxBody = 64 << 20

// version is the one whose behaviour this is modelled on.
const version = "0.11.0"

// request is what counts in a request for inference, of all the APIs together.
type request struct {
	Model    string
	Stream   bool
	Messages []struct{ Content content } // chat
	Prompt   content                     // completions
	Input    content                     // embeddings, responses

	Instructions        content // responses
	MaxTokens           *int    `json:"max_tokens"`
	MaxCompletionTokens *int    `json:"max_completion_tokens"` // chat
	MaxOutputTokens     *int    `json:"max_output_tokens"`     // responses
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	EncodingFormat string `json:"encoding_format"` // embeddings
	Dimensions     int    // embeddings
}

// failure is an error as vLLM's API tells it.
type failure struct {
	status        int
	kind, message string
	param         *string
}

func badRequest(format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, kind: "BadRequestError", message: fmt.Sprintf(format, args...)}
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"version": version})
	})
	mux.Handle("GET /metrics", s.metrics.handler)
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("POST /v1/chat/completions", s.infer(generateAs(chat{})))
	mux.HandleFunc("POST /v1/completions", s.infer(generateAs(completion{})))
	mux.HandleFunc("POST /v1/responses", s.infer(generateAs(response{})))
	mux.HandleFunc("POST /v1/embeddings", s.infer((*Server).embed))
	return s.common(mux)
}

// common is what holds for every path.
func (s *Server) common(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "uvicorn")
		w.Header().Set("X-Served-By", s.config.Name)
		if r.Method != http.MethodPost { // that hangs only once its body is read, which the kernel would take as well
			s.unhung(r)
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if f, _ := s.faultNow(); f.Unhealthy {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID          string `json:"id"`
		Object      string `json:"object"`
		OwnedBy     string `json:"owned_by"`
		Root        string `json:"root"`
		MaxModelLen int    `json:"max_model_len"`
	}
	var all []model
	for _, id := range s.config.Models {
		all = append(all, model{ID: id, Object: "model", OwnedBy: "vllm", Root: id, MaxModelLen: s.config.capacity()})
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": all})
}

// infer receives a request for inference and lets an API answer it. An API answers fully, or says what failed before it
// wrote anything, or panics with http.ErrAbortHandler.
func (s *Server) infer(answer func(*Server, http.ResponseWriter, *http.Request, request) *failure) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, failed := s.receive(r)
		fault := s.unhung(r)
		if fault.Status != 0 {
			failed = &failure{status: fault.Status, kind: http.StatusText(fault.Status), message: "fault on demand"}
		}
		if failed == nil {
			failed = answer(s, w, r, q)
		}
		if failed != nil {
			failed.write(w)
			return
		}
		s.served.Add(1)
	}
}

// receive reads and remembers a request.
func (s *Server) receive(r *http.Request) (request, *failure) {
	var q request
	body, err := io.ReadAll(http.MaxBytesReader(nil, counted{r.Body, &s.received}, maxBody))
	defer func() { s.remember(r, q.Model, len(body), err) }()
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return q, &failure{status: http.StatusRequestEntityTooLarge, kind: "RequestEntityTooLarge", message: err.Error()}
	}
	if err != nil {
		return q, badRequest("read the body: %s", err)
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return q, badRequest("parse the body: %s", err)
	}
	if q.Model == "" {
		q.Model = s.config.Models[0] // as vLLM does
	}
	if !slices.Contains(s.config.Models, q.Model) {
		param := "model"
		return q, &failure{
			status: http.StatusNotFound, kind: "NotFoundError", param: &param,
			message: fmt.Sprintf("The model `%s` does not exist.", q.Model),
		}
	}
	return q, nil
}

func (s *Server) remember(r *http.Request, model string, n int, err error) {
	client, _ := netip.ParseAddrPort(r.RemoteAddr)
	s.requests.add(Request{
		At: time.Now(), Method: r.Method, Path: r.URL.Path, Host: r.Host, Header: r.Header.Clone(),
		Client: client, Model: model, Bytes: n, Stopped: err,
	})
}

// counted counts what is read, as it is read.
type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func (f *failure) write(w http.ResponseWriter) {
	writeJSON(w, f.status, map[string]any{"error": map[string]any{
		"message": f.message, "type": f.kind, "param": f.param, "code": f.status,
	}})
}

// writeJSON answers with a value. It can't fail to encode; a caller that is gone gets nothing.
func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
