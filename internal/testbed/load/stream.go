package load

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
)

// timedReader notes in a result when the first byte came, and how many.
type timedReader struct {
	from   io.Reader
	result *Result
	now    func() time.Duration
}

func (t *timedReader) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	if n > 0 && t.result.Bytes == 0 {
		t.result.FirstByte = t.now()
	}
	t.result.Bytes += int64(n)
	return n, err
}

// maxLine is the longest line of a stream that is read: the last event of /v1/responses repeats the whole answer.
const maxLine = 4 << 20

// readStream reads server-sent events, and fails with io.ErrUnexpectedEOF if the one that ends a stream is not there: a
// mark in chat and completions, a response that has ended in responses.
func readStream(body io.Reader) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	ended := false
	for lines.Scan() {
		switch strings.TrimSpace(lines.Text()) {
		case "data: [DONE]", "event: response.completed", "event: response.incomplete", "event: response.failed":
			ended = true
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the stream: %w", err)
	}
	if !ended {
		return fmt.Errorf("read the stream: it ended without its last event: %w", io.ErrUnexpectedEOF)
	}
	return nil
}
