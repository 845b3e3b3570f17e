package identity_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/meridian-mesh/meridian/internal/testbed/authority"
	"github.com/meridian-mesh/meridian/xds/identity"
)

// A proxy gets its own cluster's viewpoint by a certificate of its own cluster's CA, and nothing otherwise.
func TestAPeerIsWhoItsCertificateSays(t *testing.T) {
	fra, iad, stranger := newAuthority(t, "fra-1.meridian"), newAuthority(t, "iad-1.meridian"), newAuthority(t, "fra-1.meridian")
	p := openPort(t, map[string]*authority.Authority{"fra-1.meridian": fra, "iad-1.meridian": iad}, nil)
	const gateway, claimed = "spiffe://fra-1.meridian/gateway", "gateway/frankfurt/fra-1"
	for name, c := range map[string]struct {
		by        *authority.Authority
		leaf      authority.Leaf
		claimed   string
		want      codes.Code
		mentioned string
	}{
		"its own":                               {fra, authority.Leaf{IDs: []string{gateway}}, claimed, codes.OK, gateway},
		"its own, as a sidecar":                 {fra, authority.Leaf{IDs: []string{gateway}}, "sidecar/frankfurt/fra-1", codes.OK, gateway},
		"another cluster's viewpoint":           {fra, authority.Leaf{IDs: []string{gateway}}, "gateway/virginia/iad-1", codes.PermissionDenied, "claims gateway/virginia/iad-1 and proves to be spiffe://fra-1.meridian/gateway"},
		"another region":                        {fra, authority.Leaf{IDs: []string{gateway}}, "gateway/virginia/fra-1", codes.PermissionDenied, "cluster fra-1 is in region frankfurt"},
		"a cluster that there is not":           {fra, authority.Leaf{IDs: []string{gateway}}, "gateway/frankfurt/fra-2", codes.PermissionDenied, "no Cluster policy has that name"},
		"no certificate":                        {nil, authority.Leaf{}, claimed, codes.Unauthenticated, "proves nothing"},
		"vouched for by another cluster's CA":   {iad, authority.Leaf{IDs: []string{gateway}}, claimed, codes.Unavailable, ""},
		"vouched for by nobody that we know":    {stranger, authority.Leaf{IDs: []string{gateway}}, claimed, codes.Unavailable, ""},
		"of a trust domain without bundle":      {fra, authority.Leaf{IDs: []string{"spiffe://gru-1.meridian/gateway"}}, claimed, codes.Unavailable, ""},
		"expired":                               {fra, authority.Leaf{IDs: []string{gateway}, NotAfter: time.Now().Add(-time.Minute)}, claimed, codes.Unavailable, ""},
		"without a SPIFFE ID":                   {fra, authority.Leaf{}, claimed, codes.Unavailable, ""},
		"with two":                              {fra, authority.Leaf{IDs: []string{gateway, "spiffe://fra-1.meridian/other"}}, claimed, codes.Unavailable, ""},
		"with the ID of the whole trust domain": {fra, authority.Leaf{IDs: []string{"spiffe://fra-1.meridian"}}, claimed, codes.Unavailable, ""},
		"with a URI of another kind":            {fra, authority.Leaf{IDs: []string{"https://fra-1.meridian/gateway"}}, claimed, codes.Unavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			who, err := claim(t, p.dial(t, p.clientTLS(t, c.by, c.leaf)), c.claimed)
			if got := status.Code(err); got != c.want || !strings.Contains(who+status.Convert(err).Message(), c.mentioned) {
				t.Errorf("%s %q, %v; want %s that mentions %q", got, who, err, c.want, c.mentioned)
			}
		})
	}
	if s := p.authenticator.Stats(); s.Accepted != 2 || s.Denied != 3 || s.Unauthenticated != 1 {
		t.Errorf("counted %+v", s)
	}
	until(t, "every handshake is counted", func() bool { s := p.credentials.Stats(); return s.Failed >= 8 && s.InFlight == 0 })
	if s := p.credentials.Stats(); s.Succeeded != 6 {
		t.Errorf("counted %+v: six are good", s)
	}
}

// Over plaintext nobody is asked, and shares are counted by address; a TLS port understands nothing else.
func TestPlaintextAsksNobody(t *testing.T) {
	a, err := identity.New(identity.Config{ClusterOf: twoClusters})
	if err != nil {
		t.Fatal(err)
	}
	plain := grpc.WithTransportCredentials(insecure.NewCredentials())
	if who, err := claim(t, dial(t, serve(t, a), plain), "gateway/frankfurt/fra-1"); err != nil || who != "127.0.0.1" {
		t.Errorf("%q, %v", who, err)
	}
	p := openPort(t, map[string]*authority.Authority{"fra-1.meridian": newAuthority(t, "fra-1.meridian")}, nil)
	if who, err := claim(t, dial(t, p.address, plain), "gateway/frankfurt/fra-1"); status.Code(err) != codes.Unavailable {
		t.Errorf("plaintext to a TLS port: %q, %v", who, err)
	}
}

// soon dials again at once, and calls wait for that.
var soon = []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
	grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 20 * time.Second, Backoff: backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond}})}

// from dials from an address.
func from(address string) grpc.DialOption {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", to) })
}

// Slow peers that come again as soon as they are cut off take all that their address may have. The ones that hurry are
// served all the same: at once from another address, and from the same one when the slow have used up their patience.
func TestSlowHandshakesHoldNobodyUp(t *testing.T) {
	for name, c := range map[string]struct {
		address  string
		patience time.Duration
	}{
		"from another address": {"127.0.0.2", time.Hour},
		"from the same":        {"127.0.0.1", 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			const share, slow = 2, 16
			fra := newAuthority(t, "fra-1.meridian")
			p := openPort(t, map[string]*authority.Authority{"fra-1.meridian": fra}, func(files *identity.TLS, _ *identity.Config) {
				files.MostHandshakes, files.MostWaiting, files.Patience, files.Timeout = 2*share, 2*slow, c.patience, 30*time.Second
			})
			for range slow {
				run(t, func(ctx context.Context) error { return dawdle(ctx, p.address) })
			}
			until(t, "slow handshakes fill their share", func() bool { s := p.credentials.Stats(); return s.InFlight == share && s.Waiting > share })
			config := p.clientTLS(t, fra, authority.Leaf{IDs: []string{"spiffe://fra-1.meridian/gateway"}})
			for range 10 {
				if _, err := claim(t, p.dial(t, config, append(soon, from(c.address))...), "gateway/frankfurt/fra-1"); err != nil {
					t.Fatal(err)
				}
				if s := p.credentials.Stats(); s.InFlight > 2*share {
					t.Errorf("%d handshakes in flight, at most %d are meant to be", s.InFlight, 2*share)
				}
			}
			if s := p.credentials.Stats(); (s.Evicted > 0) != (c.address == "127.0.0.1") || s.Succeeded < 10 {
				t.Errorf("counted %+v", s)
			}
		})
	}
}

// However many come at once, each has its turn, and none is cut off for the others' sake while it does what it can.
func TestAStormIsWorkedThrough(t *testing.T) {
	fra := newAuthority(t, "fra-1.meridian")
	p := openPort(t, map[string]*authority.Authority{"fra-1.meridian": fra}, func(files *identity.TLS, _ *identity.Config) {
		files.MostHandshakes, files.Patience, files.Timeout = 8, 10*time.Second, time.Minute
	})
	config := p.clientTLS(t, fra, authority.Leaf{IDs: []string{"spiffe://fra-1.meridian/gateway"}})
	var clients errgroup.Group
	const storm = 300
	for range storm {
		conn := p.dial(t, config)
		clients.Go(func() error {
			_, err := claim(t, conn, "gateway/frankfurt/fra-1")
			return err
		})
	}
	if err := clients.Wait(); err != nil {
		t.Error(err)
	}
	if s := p.credentials.Stats(); s.Succeeded != storm || s.Evicted+s.Refused+s.Failed > 0 {
		t.Errorf("counted %+v", s)
	}
}

// dawdle connects, says nothing until it is cut off, and begins again.
func dawdle(ctx context.Context, address string) error {
	for ctx.Err() == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			continue
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		_, _ = conn.Read(make([]byte, 1)) // until it is cut off
		stop()
		_ = conn.Close()
	}
	return nil
}

// Beyond the line connections are closed at once, and what stays silent is closed in time.
func TestConnectionsAreBounded(t *testing.T) {
	p := openPort(t, map[string]*authority.Authority{"fra-1.meridian": newAuthority(t, "fra-1.meridian")}, func(files *identity.TLS, _ *identity.Config) {
		files.MostHandshakes, files.MostWaiting, files.Patience, files.Timeout = 1, 1, time.Hour, 100*time.Millisecond
	})
	var conns []net.Conn
	for range 8 {
		conn, err := net.Dial("tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("read %d bytes from a port that should have hung up", n)
		}
	}
	until(t, "nothing is in flight", func() bool { s := p.credentials.Stats(); return s.InFlight+s.Waiting == 0 && s.Failed+s.Refused == 8 })
	if s := p.credentials.Stats(); s.Refused < 6 || s.Failed+s.Refused != 8 {
		t.Errorf("counted %+v: of 8 silent connections one has a slot and one waits", s)
	}
}
