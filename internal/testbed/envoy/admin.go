package envoy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// client opens a connection for each question, so that none outlives the Envoy that it leads to.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Get asks the admin interface for a path. An answer other than 200 is an error that has its body.
func (p *Process) Get(ctx context.Context, path string) ([]byte, error) {
	body, err := get(ctx, "http://"+p.admin.String()+path)
	if err != nil {
		return nil, fmt.Errorf("ask Envoy for %s: %w", path, err)
	}
	return body, nil
}

func get(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	return body, nil
}

// Ready is nil when the Envoy has its first configuration, listens, and is not draining.
func (p *Process) Ready(ctx context.Context) error {
	_, err := p.Get(ctx, "/ready")
	return err
}
