package load

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// Answerer is who answered a request and why, by the headers that Meridian puts into each answer. Where there are none,
// as in an error of the network, it is empty.
type Answerer struct {
	Cluster string `json:"cluster"`
	Region  string `json:"region"`
	Reason  string `json:"reason"`
}

// ErrorKind is how a request failed without a status that says so.
type ErrorKind string

// The kinds of errors.
const (
	Refused     ErrorKind = "refused"     // nobody listens there
	Reset       ErrorKind = "reset"       // the connection was reset
	Timeout     ErrorKind = "timeout"     // longer than Config.Timeout
	Truncated   ErrorKind = "truncated"   // the answer or the connection ended too early
	Interrupted ErrorKind = "interrupted" // by the end of Run's context: no failure
	Other       ErrorKind = "other"
)

// Result is what came of one request.
type Result struct {
	// N is its number, from 0. Due is when it was to begin, since the start of the run.
	N   int
	Due time.Duration
	// FirstByte and Whole are how long it took until the first byte of the answer's body and until its end, since it was
	// due. FirstByte is 0 where none came.
	FirstByte, Whole time.Duration
	// Status is 0 where none came.
	Status   int
	Answerer Answerer
	// Bytes is the size of the answer's body.
	Bytes int64
	// Err and Kind say what went wrong, if it was not the status. Err is nil, and Kind empty, otherwise.
	Err  error
	Kind ErrorKind
}

// OK is whether it succeeded: a status of 2xx and a complete answer.
func (r Result) OK() bool { return r.Err == nil && r.Status >= 200 && r.Status < 300 }

// Done is when it ended, since the start of the run.
func (r Result) Done() time.Duration { return r.Due + r.Whole }

// send sends the n-th request.
func (r *runner) send(ctx context.Context, n int, due time.Duration) Result {
	result := Result{N: n, Due: due}
	limited, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	result.Err = r.exchange(limited, &result)
	result.Whole = r.since(due)
	if result.Err != nil {
		result.Kind = kindOf(ctx, result.Err)
	}
	return result
}

func (r *runner) since(due time.Duration) time.Duration { return time.Since(r.start) - due }

// exchange fills in what the answer says.
func (r *runner) exchange(ctx context.Context, result *Result) error {
	c := r.config
	target := c.Targets[result.N%len(c.Targets)] + c.Path
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(c.Body(result.N)))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	for name, values := range c.Header {
		q.Header[name] = values
	}
	q.Host = c.Header.Get("Host")
	answer, err := r.client.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	result.Status = answer.StatusCode
	result.Answerer = Answerer{
		Cluster: answer.Header.Get("x-meridian-cluster"),
		Region:  answer.Header.Get("x-meridian-region"),
		Reason:  answer.Header.Get("x-meridian-reason"),
	}
	body := &timedReader{from: answer.Body, result: result, now: func() time.Duration { return r.since(result.Due) }}
	if c.Stream && result.Status < 300 {
		return readStream(body)
	}
	_, err = io.Copy(io.Discard, body)
	return err
}

// kindOf sorts an error. ctx is the one of the run.
func kindOf(ctx context.Context, err error) ErrorKind {
	var timeout net.Error
	switch {
	case ctx.Err() != nil:
		return Interrupted
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Reset
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return Truncated
	default:
		return Other
	}
}
