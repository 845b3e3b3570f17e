package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Config says what to send. At least one of Duration and Requests must be set.
type Config struct {
	// Targets are base URLs, such as http://127.0.0.1:8080; requests go to them in turn. Required.
	Targets []string
	// Path defaults to /v1/chat/completions.
	Path string

	// Rate is how many requests begin in a second, in an open loop. 0 is a closed loop.
	Rate float64
	// Concurrency is the number of callers in a closed loop (default 1), and in an open loop the most requests in flight
	// (default 4096): those beyond wait, which counts in their latency.
	Concurrency int
	// Duration is for how long requests begin; those in flight then are waited for.
	Duration time.Duration
	// Requests is how many begin at most. Default, and limit, a million.
	Requests int
	// Timeout is how long a request may take from its begin to the end of its answer. Default 30s.
	Timeout time.Duration

	// Model is asked for with Prompt, and with MaxTokens unless 0.
	Model     string
	Prompt    string
	MaxTokens int
	// Stream asks for server-sent events.
	Stream bool
	// Body makes the n-th body, from 0, in place of the five above; Stream still says how the answer is read. It must be
	// safe for concurrent use.
	Body func(n int) []byte
	// Header is sent with each request. Host in it is the request's host.
	Header http.Header

	// Observe is told of each result as it comes, one at a time. It must not block for long: it holds up the count.
	Observe func(Result)
}

const mostRequests = 1_000_000

func (c Config) withDefaults() (Config, error) {
	switch {
	case len(c.Targets) == 0:
		return c, errors.New("load: Config.Targets is required")
	case c.Duration <= 0 && c.Requests <= 0:
		return c, errors.New("load: set Config.Duration or Config.Requests, or it would not end")
	case c.Body == nil && c.Model == "":
		return c, errors.New("load: Config.Model or Config.Body is required")
	case !(c.Rate >= 0 && c.Rate <= 1e6):
		return c, fmt.Errorf("load: Config.Rate is %v, not 0 to a million a second", c.Rate)
	case c.Requests > mostRequests:
		return c, fmt.Errorf("load: Config.Requests is %d, more than %d", c.Requests, mostRequests)
	}
	if c.Requests <= 0 {
		c.Requests = mostRequests
	}
	if c.Path == "" {
		c.Path = "/v1/chat/completions"
	}
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Concurrency <= 0 {
		c.Concurrency = 1
		if c.Rate > 0 {
			c.Concurrency = 4096
		}
	}
	if c.Body == nil {
		body, err := c.chat()
		if err != nil {
			return c, fmt.Errorf("load: %w", err)
		}
		c.Body = func(int) []byte { return body }
	}
	return c, nil
}

// chat is the body of a chat completion.
func (c Config) chat() ([]byte, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	return json.Marshal(struct {
		Model     string    `json:"model"`
		Messages  []message `json:"messages"`
		MaxTokens int       `json:"max_tokens,omitempty"`
		Stream    bool      `json:"stream,omitempty"`
	}{c.Model, []message{{"user", c.Prompt}}, c.MaxTokens, c.Stream})
}
