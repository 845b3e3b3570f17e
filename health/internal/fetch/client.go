package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"
)

const (
	// maxHeaderBytes bounds what a server may send before its body.
	maxHeaderBytes = 64 << 10
	// maxIdleConns bounds how many connections, and so how many file descriptors, are kept for the next turn.
	maxIdleConns = 4096
	// idleTimeout ends connections to servers that are no longer asked.
	idleTimeout = 30 * time.Second
)

// Client asks servers. Make one with New.
type Client struct {
	http http.Client
}

// New makes a Client. It keeps one connection to each server for the next turn, as proxies do, so that asking costs no
// handshake; on a connection that has gone dead the request fails in its time, and the next one opens another. It
// follows no redirects, since what answers elsewhere is not the server asked, and uses no proxy.
func New() *Client {
	return &Client{http.Client{
		Transport: &http.Transport{
			MaxIdleConns: maxIdleConns, MaxIdleConnsPerHost: 1, IdleConnTimeout: idleTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Request is what is asked of whom.
type Request struct {
	Address netip.AddrPort
	// Path begins with "/" and may have a query.
	Path string
	// Timeout bounds the whole, from dialling to the end of the body. Positive.
	Timeout time.Duration
}

// Get sends a GET and hands the body of an answer with status 200 to read, whose error it gives back. Any other status
// is an error.
func (c *Client) Get(ctx context.Context, r Request, read func(body io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Address.String()+r.Path, nil)
	if err != nil {
		return fmt.Errorf("path %q: %w", r.Path, err)
	}
	request.Header.Set("User-Agent", "meridian")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return read(response.Body)
}

// Close ends the connections that no request uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }
