package modelserver

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/port"
)

// dialect is how one API words a generation.
type dialect interface {
	// prompt takes the prompt and the limit of tokens out of a request, nil for none.
	prompt(request) (content, *int, *failure)
	// whole is an answer that is not streamed.
	whole(g *generation, text string) any
	// begin, token and end are the events of one that is: before, for each token (from 0), and after.
	begin(g *generation) []event
	token(g *generation, n int, word string) []event
	end(g *generation, text string) []event
}

// generation is one answer in the making. The dialects read it.
type generation struct {
	id      string // without the prefix of an API
	name    string // of the server
	model   string
	created int64  // Unix seconds
	usage   bool   // the stream is to end with it
	reason  string // why it ends: "stop", or "length" where the request set the limit

	promptTokens, outputTokens int

	words    *words
	sequence *sequence
}

// usage is the shape of the usage in chat, completions and embeddings.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Total      int `json:"total_tokens"`
	Completion int `json:"completion_tokens"`
}

func (g *generation) spent() usage {
	return usage{Prompt: g.promptTokens, Total: g.promptTokens + g.outputTokens, Completion: g.outputTokens}
}

// generateAs answers in a dialect.
func generateAs(d dialect) func(*Server, http.ResponseWriter, *http.Request, request) *failure {
	return func(s *Server, w http.ResponseWriter, r *http.Request, q request) *failure {
		g, failed := s.begin(d, q, r.Header.Get("X-Request-Id"))
		if failed != nil {
			return failed
		}
		defer s.engine.abort(g.sequence)
		if q.Stream {
			s.stream(d, g, w, r)
			return nil
		}
		text := s.run(g, r, func(int, string) {})
		s.reportLoad(w, r)
		writeJSON(w, http.StatusOK, d.whole(g, text))
		return nil
	}
}

// begin submits a request to the engine.
func (s *Server) begin(d dialect, q request, id string) (*generation, *failure) {
	prompt, limit, failed := d.prompt(q)
	if failed != nil {
		return nil, failed
	}
	if id == "" {
		id = fmt.Sprintf("%s-%d", s.config.Name, s.lastID.Add(1))
	}
	g := &generation{
		id: id, name: s.config.Name, model: q.Model, created: time.Now().Unix(), usage: q.StreamOptions.IncludeUsage,
		reason: "stop", promptTokens: prompt.tokens(), outputTokens: s.config.OutputTokens,
		words: newWords(s.config.Seed, q.Model, prompt),
	}
	if limit != nil {
		if *limit < 1 {
			return nil, badRequest("max_tokens must be at least 1, got %d.", *limit)
		}
		g.outputTokens, g.reason = *limit, "length"
	}
	g.sequence, failed = s.submit(g.promptTokens, g.outputTokens)
	return g, failed
}

func (s *Server) submit(prompt, output int) (*sequence, *failure) {
	sequence, err := s.engine.submit(prompt, output)
	switch {
	case errors.Is(err, errTooLong):
		return nil, badRequest("This model's maximum context length is %d tokens. However, you requested %d tokens"+
			" (%d in the messages, %d in the completion).", s.config.capacity(), prompt+output, prompt, output)
	case err != nil:
		return nil, &failure{status: http.StatusTooManyRequests, kind: "TooManyRequests", message: err.Error()}
	}
	return sequence, nil
}

// run waits for the tokens, hands each on as it comes, and returns the text. If the caller or the server goes away, or
// the fault is to reset, it ends the handler.
func (s *Server) run(g *generation, r *http.Request, each func(n int, word string)) string {
	var text strings.Builder
	for n := 0; s.next(g, r); n++ {
		if n == 0 {
			s.metrics.sawFirst(g.sequence)
		}
		s.metrics.generatedTokens.Inc()
		word := g.words.next()
		text.WriteString(word)
		each(n, word)
		if f, _ := s.faultNow(); f.ResetAfterChunks > 0 && n+1 >= f.ResetAfterChunks {
			port.AbortHTTP(r)
		}
	}
	s.metrics.sawLast(g.sequence, g.reason)
	return text.String()
}

// next waits for a token, and while the fault is to hang; false is the end.
func (s *Server) next(g *generation, r *http.Request) bool {
	more := false
	select {
	case _, more = <-g.sequence.tokens:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
	s.unhung(r)
	return more
}
