package port

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// ServeHTTP answers HTTP/1.1 until ctx ends, which closes the Port and all connections, or until Close. It returns once
// every connection and handler has ended. Contexts of requests end with ctx, and with Close: a handler that gives up for
// that should panic with http.ErrAbortHandler, for to return would be an answer.
func (p *Port) ServeHTTP(ctx context.Context, handler http.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var conns sync.WaitGroup
	server := &http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // resets and hung-up callers are what it is for
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew: // called by Serve, so none comes after Serve has returned
				conns.Add(1)
			case http.StateClosed: // the last that a connection's goroutine does
				conns.Done()
			}
		},
	}
	unlisten := context.AfterFunc(ctx, func() { _ = p.Close() })
	defer unlisten()
	err := server.Serve(p)
	cancel()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	err = errors.Join(err, p.Close(), server.Close())
	conns.Wait()
	return err
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// AbortHTTP ends a request that ServeHTTP serves, with a RST of its connection. It ends the handler: it does not return.
func AbortHTTP(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*Conn); ok {
		c.Reset()
	}
	panic(http.ErrAbortHandler)
}
