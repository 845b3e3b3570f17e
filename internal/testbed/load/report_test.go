package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestReport(t *testing.T) {
	near, far := Answerer{"eu-1", "eu", "nearest"}, Answerer{"us-1", "us", "spill"}
	start := time.Unix(1e9, 0)
	r := newReport(start)
	refused := errors.New("connect: refused")
	for _, result := range []Result{
		{N: 0, Due: 0, Whole: 100 * time.Millisecond, FirstByte: 50 * time.Millisecond, Status: 200, Answerer: near},
		{N: 1, Due: 500 * time.Millisecond, Whole: 200 * time.Millisecond, FirstByte: 70 * time.Millisecond, Status: 200, Answerer: near},
		{N: 2, Due: 2 * time.Second, Whole: 300 * time.Millisecond, FirstByte: 90 * time.Millisecond, Status: 200, Answerer: far},
		{N: 3, Due: 2 * time.Second, Whole: time.Millisecond, Status: 503, Answerer: Answerer{Reason: "residency"}},
		{N: 4, Due: 2 * time.Second, Err: refused, Kind: Refused},
		{N: 5, Due: 2 * time.Second, Err: errors.New("another"), Kind: Refused},
		{N: 6, Due: 2 * time.Second, Err: context.Canceled, Kind: Interrupted},
		{N: 7, Due: 2 * time.Second, Status: 200, Answerer: far, Err: io.ErrUnexpectedEOF, Kind: Truncated},
	} {
		r.add(result)
	}
	r.finish(3 * time.Second)
	want := &Report{
		Start: start, Elapsed: 3 * time.Second, Sent: 8, OK: 3, Failed: 4, Interrupted: 1,
		Statuses: []StatusCount{{200, 4}, {503, 1}},
		Errors: []ErrorCount{
			{Interrupted, 1, "context canceled", 6}, {Refused, 2, "connect: refused", 4}, {Truncated, 1, "unexpected EOF", 7},
		},
		Answers: []AnswerCount{{Answerer{Reason: "residency"}, 1}, {near, 2}, {far, 2}},
		Clusters: []Cluster{
			{"eu-1", 2, 100 * time.Millisecond, 700 * time.Millisecond},
			{"us-1", 1, 2300 * time.Millisecond, 2300 * time.Millisecond},
		},
		FirstByte: Latency{70 * time.Millisecond, 90 * time.Millisecond, 90 * time.Millisecond, 90 * time.Millisecond},
		Whole:     Latency{200 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond},
		Seconds: []Second{
			{OK: 2, Clusters: map[string]int{"eu-1": 2}},
			{Clusters: map[string]int{}},
			{OK: 1, Failed: 4, Clusters: map[string]int{"us-1": 1}},
		},
	}
	if diff := cmp.Diff(want, r, cmpopts.IgnoreUnexported(Report{})); diff != "" {
		t.Errorf("report differs (-want +got):\n%s", diff)
	}
	if c, found := r.Cluster("us-1"); !found || c.OK != 1 || r.Answered("us-1") != 2 {
		t.Errorf("us-1: %+v, %v, %d answers", c, found, r.Answered("us-1"))
	}
	if c, found := r.Cluster("ap-1"); found {
		t.Errorf("ap-1: %+v", c)
	}
}

func TestKindOf(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want ErrorKind
	}{
		{t.Context(), syscall.ECONNREFUSED, Refused},
		{t.Context(), syscall.ECONNRESET, Reset},
		{t.Context(), context.DeadlineExceeded, Timeout},
		{t.Context(), os.ErrDeadlineExceeded, Timeout},
		{t.Context(), io.EOF, Truncated},
		{t.Context(), io.ErrUnexpectedEOF, Truncated},
		{t.Context(), errors.New("what"), Other},
		{over, syscall.ECONNRESET, Interrupted},
	} {
		if got := kindOf(c.ctx, fmt.Errorf("wrapped: %w", c.err)); got != c.want {
			t.Errorf("%v is %s, want %s", c.err, got, c.want)
		}
	}
}

func TestReadStream(t *testing.T) {
	for _, c := range []struct {
		name, text string
		err        error
	}{
		{"a chat", "data: {}\n\ndata: [DONE]\n\n", nil},
		{"a response", "event: response.created\ndata: {}\n\nevent: response.completed\ndata: {}\n\n", nil},
		{"cut off", "data: {}\n\ndata: {}\n\n", io.ErrUnexpectedEOF},
		{"cut off in the mark", "data: {}\n\ndata: [DO", io.ErrUnexpectedEOF},
		{"empty", "", io.ErrUnexpectedEOF},
	} {
		if err := readStream(strings.NewReader(c.text)); !errors.Is(err, c.err) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.err)
		}
	}
}
