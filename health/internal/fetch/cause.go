package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// maxCause bounds what a server can make us say, in bytes.
const maxCause = 200

// Cause says in few words why asking failed, for people who know whom and how was asked; "" of no error. timeout is
// what the server was given.
func Cause(err error, timeout time.Duration) string {
	if err == nil {
		return ""
	}
	var timedOut net.Error
	var errno syscall.Errno
	var urlError *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timedOut) && timedOut.Timeout():
		return fmt.Sprintf("no answer within %v", timeout)
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before the end of the answer"
	case errors.As(err, &urlError):
		err = urlError.Err
	}
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxCause)], "")
}
