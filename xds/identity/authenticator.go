package identity

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Config configures an Authenticator.
type Config struct {
	// Credentials are those that the port is served with. Nil: plaintext, over which nobody is asked who they are.
	Credentials *Credentials
	// Reviewers check bearer tokens, by the cluster whose proxies have them. Only with Credentials: a token sent in
	// plaintext is anybody's.
	Reviewers map[policies.ClusterName]*Reviewer
	// ClusterOf looks a cluster up in the policies in force. Required.
	ClusterOf func(policies.ClusterName) (*policies.Cluster, bool)
	// Log is told, once a second, of a proxy that was refused. Default: slog's default.
	Log *slog.Logger
}

// Authenticator says who peers are and what they may have. Make one with New.
type Authenticator struct {
	// Set once.
	config  Config
	refused *sampler

	// Atomic, by outcome.
	outcomes [len(outcomeCodes)]atomic.Uint64
}

// outcomeCodes are the ways a check can end.
var outcomeCodes = [...]codes.Code{codes.OK, codes.Unauthenticated, codes.PermissionDenied, codes.Unavailable}

// New makes an Authenticator.
func New(config Config) (*Authenticator, error) {
	switch {
	case config.ClusterOf == nil:
		return nil, errors.New("identity: Config.ClusterOf is required")
	case config.Credentials == nil && len(config.Reviewers) > 0:
		return nil, errors.New("identity: tokens are read over TLS only: give a certificate and a key")
	case config.Credentials != nil && len(config.Reviewers) == 0 && config.Credentials.current.Load().bundles.Len() == 0:
		return nil, errors.New("identity: no proxy could prove who it is: give client CAs, or API servers that review tokens")
	}
	config.Log = cmp.Or(config.Log, slog.Default())
	return &Authenticator{config: config, refused: &sampler{}}, nil
}

// Check says who is at the other end of a stream or call, and that this one may have the viewpoint that it claims. The error
// has a gRPC status, and says what was claimed and what was proved: Unauthenticated where nothing was proved,
// PermissionDenied where it was something else, Unavailable where an API server does not answer.
func (a *Authenticator) Check(ctx context.Context, claimed world.Viewpoint) (Identity, error) {
	if a.config.Credentials == nil {
		return Identity{Address: remote(ctx)}, nil
	}
	who, err := a.check(ctx, claimed)
	code := status.Code(err)
	for i, c := range outcomeCodes {
		if c == code {
			a.outcomes[i].Add(1)
		}
	}
	if err != nil {
		a.refused.do(func() { a.config.Log.Warn("a proxy was refused", "viewpoint", string(claimed.ID()), "error", err) })
	}
	return who, err
}

// Identify says who is at the other end of a call that claims no viewpoint: the peer's certificate must do, since a token is
// reviewed by the API server of the cluster that is claimed. The error has a gRPC status.
func (a *Authenticator) Identify(ctx context.Context) (Identity, error) {
	who := Identity{Address: remote(ctx)}
	if a.config.Credentials == nil {
		return who, nil
	}
	var err error
	if who.SPIFFE, err = a.certified(ctx); err == nil && who.SPIFFE.IsZero() {
		err = errors.New("there is none")
	}
	if err != nil {
		return Identity{}, status.Errorf(codes.Unauthenticated, "a client certificate with a SPIFFE ID is required: %s", err.Error())
	}
	return who, nil
}

func (a *Authenticator) check(ctx context.Context, claimed world.Viewpoint) (Identity, error) {
	who, err := a.prove(ctx, claimed)
	if err != nil {
		return Identity{}, err
	}
	cluster, ok := a.config.ClusterOf(claimed.Cluster)
	if !ok {
		return Identity{}, status.Errorf(codes.PermissionDenied, "the node claims %s and proves to be %s: no Cluster policy has that name", claimed.ID(), who.Name())
	}
	if err := Authorize(cluster, who, claimed); err != nil {
		return Identity{}, status.Error(codes.PermissionDenied, err.Error())
	}
	return who, nil
}

// prove finds out who a peer is, by its certificate or else by its token.
func (a *Authenticator) prove(ctx context.Context, claimed world.Viewpoint) (Identity, error) {
	id, err := a.certified(ctx)
	if err != nil {
		return Identity{}, status.Errorf(codes.Unauthenticated, "the node claims %s: %s", claimed.ID(), err.Error())
	}
	if !id.IsZero() {
		return Identity{SPIFFE: id, Address: remote(ctx)}, nil
	}
	token, ok := bearer(ctx)
	if !ok {
		return Identity{}, status.Errorf(codes.Unauthenticated, "the node claims %s and proves nothing: give it a client certificate with a SPIFFE ID, or a bearer token of a service account", claimed.ID())
	}
	reviewer, ok := a.config.Reviewers[claimed.Cluster]
	if !ok {
		return Identity{}, status.Errorf(codes.Unauthenticated, "the node claims %s and has a bearer token, and no API server is known that reviews those of cluster %s", claimed.ID(), claimed.Cluster)
	}
	account, err := reviewer.Review(ctx, token)
	if err != nil {
		return Identity{}, status.Errorf(status.Code(err), "the node claims %s: %s", claimed.ID(), status.Convert(err).Message())
	}
	return Identity{Account: account, Address: remote(ctx)}, nil
}

// certified is the ID in the peer's certificate, zero where it has none. On a connection that is older than the bundles in
// force, or than its certificate was good for, the certificate is judged again.
func (a *Authenticator) certified(ctx context.Context) (spiffeid.ID, error) {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return spiffeid.ID{}, errors.New("not a connection")
	}
	info, ok := p.AuthInfo.(authInfo)
	if !ok {
		return spiffeid.ID{}, errors.New("the connection is not over TLS")
	}
	chain, now := info.State.PeerCertificates, a.config.Credentials.current.Load()
	if len(chain) == 0 {
		return spiffeid.ID{}, nil
	}
	if info.by == now && time.Now().Before(chain[0].NotAfter) {
		return spiffeid.FromURI(chain[0].URIs[0]) // verify has seen that there is one
	}
	return now.verify(chain)
}

// bearer is the token in the request's metadata.
func bearer(ctx context.Context) (string, bool) {
	values := metadata.ValueFromIncomingContext(ctx, "authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// remote is the peer's IP address, invalid where it has none.
func remote(ctx context.Context) netip.Addr {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return netip.Addr{}
	}
	return addressOf(p.Addr)
}

// Stats are counts of checks since the start, by outcome.
type Stats struct {
	// Accepted may have what they claim; Unauthenticated prove nothing; Denied prove to be somebody else; Unavailable
	// could not be asked about.
	Accepted, Unauthenticated, Denied, Unavailable uint64
}

// Stats counts.
func (a *Authenticator) Stats() Stats {
	return Stats{a.outcomes[0].Load(), a.outcomes[1].Load(), a.outcomes[2].Load(), a.outcomes[3].Load()}
}
