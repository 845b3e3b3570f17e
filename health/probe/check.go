package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/meridian-mesh/meridian/health/internal/fetch"
	"github.com/meridian-mesh/meridian/policies"
)

// check probes a target once, within its timeout.
func (p *Prober) check(ctx context.Context, t Target) error {
	timeout := t.Check.Timeout.Std()
	if t.Check.Type == policies.HealthHTTP {
		return p.http.Get(ctx, fetch.Request{Address: t.Endpoint.Address, Path: t.Check.Path, Timeout: timeout}, drain)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch t.Check.Type {
	case policies.HealthGRPC:
		return checkGRPC(ctx, t.Endpoint.Address, t.Check.Service)
	case policies.HealthTCP:
		return checkTCP(ctx, t.Endpoint.Address)
	}
	return fmt.Errorf("health check type %q is not known", t.Check.Type)
}

// drain reads as much of a body as a health page may have, so that the connection can be used again.
func drain(body io.Reader) error {
	const most = 64 << 10
	if _, err := io.CopyN(io.Discard, body, most); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// checkTCP opens a connection and closes it.
func checkTCP(ctx context.Context, address netip.AddrPort) error {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address.String())
	if err != nil {
		return err
	}
	return connection.Close()
}

// checkGRPC calls grpc.health.v1.Health/Check on a connection of its own: kept connections would take several
// goroutines for each endpoint, and one that is there does not show that others can still be opened.
func checkGRPC(ctx context.Context, address netip.AddrPort, service string) error {
	connection, err := grpc.NewClient("passthrough:///"+address.String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent("meridian"))
	if err != nil {
		return err
	}
	defer connection.Close()
	answer, err := healthv1.NewHealthClient(connection).Check(ctx, &healthv1.HealthCheckRequest{Service: service})
	switch {
	case status.Code(err) == codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case err != nil:
		return fmt.Errorf("%s: %s", status.Code(err), status.Convert(err).Message())
	case answer.GetStatus() != healthv1.HealthCheckResponse_SERVING:
		return fmt.Errorf("the server says %s", answer.GetStatus())
	}
	return nil
}
