package identity

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

// TLS says how the port is served. CertificateFile and KeyFile are required.
type TLS struct {
	// CertificateFile and KeyFile are our own PEM chain and key.
	CertificateFile, KeyFile string
	// ClientCAs are PEM bundles by the trust domain that each vouches for.
	ClientCAs map[string]string
	// ClientCADir is a folder with further bundles, a file TRUST-DOMAIN.pem each.
	ClientCADir string
	// MostHandshakes is how many are made at a time, half of them at most from one address; further connections wait in
	// line. More would only keep each other waiting. Default 256.
	MostHandshakes int
	// MostWaiting is how long that line is at most; further connections are closed. Default 16384.
	MostWaiting int
	// Timeout is how long a connection may take, in line and in its handshake, until it is ready for HTTP/2. Default 15s.
	Timeout time.Duration
	// Patience is how long a peer may keep a handshake waiting while others are in line. Default 1s.
	Patience time.Duration
	// Poll is the time between looks at the files; a change is taken up when two looks saw the same. Default 500ms.
	Poll time.Duration
	// Log is told of files taken up, of files that can't be, and, once a second, of a handshake that failed. Default:
	// slog's default.
	Log *slog.Logger
}

func (t *TLS) setDefaults() {
	t.MostHandshakes = cmp.Or(max(t.MostHandshakes, 0), 256)
	t.MostWaiting = cmp.Or(max(t.MostWaiting, 0), 16<<10)
	t.Timeout = cmp.Or(max(t.Timeout, 0), 15*time.Second)
	t.Patience = cmp.Or(max(t.Patience, 0), time.Second)
	t.Poll = cmp.Or(max(t.Poll, 0), 500*time.Millisecond)
	t.Log = cmp.Or(t.Log, slog.Default())
}

// Credentials are gRPC transport credentials for a server. Run must be running for files to be followed.
type Credentials struct {
	// Set once.
	config TLS
	gate   *gate
	failed *sampler

	// Atomic.
	current       atomic.Pointer[material]
	succeeded     atomic.Uint64
	handshakeErrs atomic.Uint64
	reloads       atomic.Uint64
	reloadErrs    atomic.Uint64

	// Only by Run, after NewCredentials.
	inForce [sha256.Size]byte // of what current was made of
	seen    [sha256.Size]byte // at the last look
	told    string            // the last error that was told
}

// NewCredentials reads the files. The error says which can't be used and why.
func NewCredentials(config TLS) (*Credentials, error) {
	if config.CertificateFile == "" || config.KeyFile == "" {
		return nil, errors.New("TLS: a certificate and a key are required")
	}
	config.setDefaults()
	found, bundles, err := config.read()
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	m, err := config.parse(found, bundles)
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	c := &Credentials{config: config, gate: newGate(config), failed: &sampler{}, inForce: found.digest(), seen: found.digest()}
	c.current.Store(m)
	return c, nil
}

// authInfo is what a handshake proved, and with which material.
type authInfo struct {
	credentials.TLSInfo
	by *material
}

// ServerHandshake makes a handshake in its turn. The deadline that it sets on the connection holds until the HTTP/2
// preface has been exchanged, when gRPC lifts it.
func (c *Credentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	deadline := time.Now().Add(c.config.Timeout)
	if err := raw.SetDeadline(deadline); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("handshake: %w", err), raw.Close())
	}
	turn, err := c.gate.enter(raw, deadline)
	if err != nil {
		return nil, nil, errors.Join(err, raw.Close())
	}
	m := c.current.Load()
	conn, info, err := m.credentials.ServerHandshake(turn)
	turn.leave()
	if err != nil {
		c.handshakeErrs.Add(1)
		c.failed.do(func() { c.config.Log.Warn("a proxy's TLS handshake failed", "error", err) })
		return nil, nil, fmt.Errorf("handshake: %w", err)
	}
	c.succeeded.Add(1)
	return conn, authInfo{info.(credentials.TLSInfo), m}, nil
}

// ClientHandshake is refused: these are a server's credentials.
func (c *Credentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these are credentials of a server")
}

// Info describes the protocol.
func (c *Credentials) Info() credentials.ProtocolInfo { return c.current.Load().credentials.Info() }

// Clone gives the same credentials: they are safe to share, and followed on disk once.
func (c *Credentials) Clone() credentials.TransportCredentials { return c }

// OverrideServerName does nothing: a server has none to check.
func (c *Credentials) OverrideServerName(string) error { return nil }

// TLSStats are counts since the start, and the state of now.
type TLSStats struct {
	// Succeeded and Failed are handshakes by outcome; those that gave way to others have failed.
	Succeeded, Failed uint64
	// Evicted are those cut off because their peer kept others waiting; Refused, connections closed for want of room.
	Evicted, Refused uint64
	// InFlight and Waiting are handshakes being made, and connections in line.
	InFlight, Waiting int
	// Reloads and ReloadsFailed are times that changed files were taken up, and could not be.
	Reloads, ReloadsFailed uint64
	// Expires is when our own certificate does.
	Expires time.Time
}

// Stats counts.
func (c *Credentials) Stats() TLSStats {
	return TLSStats{
		Succeeded: c.succeeded.Load(), Failed: c.handshakeErrs.Load(), Evicted: c.gate.evicted.Load(), Refused: c.gate.refused.Load(),
		InFlight: int(c.gate.inFlight.Load()), Waiting: len(c.gate.line),
		Reloads: c.reloads.Load(), ReloadsFailed: c.reloadErrs.Load(), Expires: c.current.Load().expires,
	}
}
