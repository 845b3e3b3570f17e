package controlplane

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/identity"
)

// peers are how proxies prove who they are. Over plaintext they don't, and both are nil.
type peers struct {
	credentials   *identity.Credentials
	authenticator *identity.Authenticator
}

// newPeers makes what proves who proxies are.
func (p *Plane) newPeers() (peers, error) {
	if p.config.TLS == nil {
		if len(p.config.TokenReviews) > 0 {
			return peers{}, errors.New("tokens are read over TLS only: give a certificate and a key")
		}
		return peers{}, nil
	}
	files := *p.config.TLS
	files.Log = p.log
	credentials, err := identity.NewCredentials(files)
	if err != nil {
		return peers{}, err
	}
	reviewers := map[policies.ClusterName]*identity.Reviewer{}
	for _, cluster := range slices.Sorted(maps.Keys(p.config.TokenReviews)) {
		reviewers[cluster], err = identity.NewReviewer(identity.ReviewConfig{Cluster: cluster, Kubeconfig: p.config.TokenReviews[cluster]})
		if err != nil {
			return peers{}, err
		}
	}
	authenticator, err := identity.New(identity.Config{Credentials: credentials, Reviewers: reviewers, ClusterOf: p.clusterOf, Log: p.log})
	return peers{credentials, authenticator}, err
}

// options serve with the credentials, and let only known peers call what does not ask for a viewpoint of its own.
func (p peers) options() []grpc.ServerOption {
	if p.credentials == nil {
		return nil
	}
	return []grpc.ServerOption{
		grpc.Creds(p.credentials),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if _, err := p.authenticator.Identify(ctx); err != nil {
				return nil, err
			}
			return handle(ctx, request)
		}),
		grpc.ChainStreamInterceptor(func(server any, stream grpc.ServerStream, call *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if strings.HasPrefix(call.FullMethod, "/envoy.service.status.") { // every other stream begins with a claim, which is checked
				if _, err := p.authenticator.Identify(stream.Context()); err != nil {
					return err
				}
			}
			return handle(server, stream)
		}),
	}
}

// authenticate is nil over plaintext: a node is then who it says it is. Proxies of one cluster may share an identity, so
// limits go by that and by where they are: one that misbehaves uses up nobody else's.
func (p peers) authenticate() func(context.Context, world.Viewpoint) (string, error) {
	if p.authenticator == nil {
		return nil
	}
	return func(ctx context.Context, claimed world.Viewpoint) (string, error) {
		who, err := p.authenticator.Check(ctx, claimed)
		name := who.Name()
		if who.Account.Pod == "" && who.Address.IsValid() {
			name += " at " + who.Address.String()
		}
		return name, err
	}
}

// run follows the files of the credentials.
func (p peers) run(ctx context.Context) error {
	if p.credentials == nil {
		return nil
	}
	return p.credentials.Run(ctx)
}

var (
	checksDesc     = describe("meridian_identity_checks_total", "Checks of who a proxy is, against what it claims, by outcome.", "outcome")
	handshakesDesc = describe("meridian_tls_handshakes_total", "TLS handshakes of proxies by outcome: evicted ones kept others waiting, for refused ones there was no room.", "outcome")
	inFlightDesc   = describe("meridian_tls_handshakes_in_flight", "TLS handshakes being made, and connections that wait for one.", "state")
	reloadsDesc    = describe("meridian_tls_reloads_total", "Changes of the TLS files by outcome.", "outcome")
	expiryDesc     = describe("meridian_tls_certificate_expiry_timestamp_seconds", "When the certificate of the xDS port expires.")
)

// Describe sends the descriptions of what Collect sends.
func (p peers) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{checksDesc, handshakesDesc, inFlightDesc, reloadsDesc, expiryDesc} {
		out <- d
	}
}

// Collect sends the values of now; none over plaintext.
func (p peers) Collect(out chan<- prometheus.Metric) {
	if p.credentials == nil {
		return
	}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	checks, tls := p.authenticator.Stats(), p.credentials.Stats()
	for outcome, n := range map[string]uint64{"accepted": checks.Accepted, "unauthenticated": checks.Unauthenticated, "denied": checks.Denied, "unavailable": checks.Unavailable} {
		send(checksDesc, prometheus.CounterValue, float64(n), outcome)
	}
	for outcome, n := range map[string]uint64{"success": tls.Succeeded, "failure": tls.Failed - tls.Evicted, "evicted": tls.Evicted, "refused": tls.Refused} {
		send(handshakesDesc, prometheus.CounterValue, float64(n), outcome)
	}
	send(reloadsDesc, prometheus.CounterValue, float64(tls.Reloads), "success")
	send(reloadsDesc, prometheus.CounterValue, float64(tls.ReloadsFailed), "failure")
	send(inFlightDesc, prometheus.GaugeValue, float64(tls.InFlight), "handshake")
	send(inFlightDesc, prometheus.GaugeValue, float64(tls.Waiting), "waiting")
	send(expiryDesc, prometheus.GaugeValue, float64(tls.Expires.Unix()))
}
