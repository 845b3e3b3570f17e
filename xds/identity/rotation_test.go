package identity_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meridian-mesh/meridian/internal/testbed/authority"
	"github.com/meridian-mesh/meridian/xds/identity"
)

// presented is the certificate that the port shows to a new connection.
func (p *port) presented(t *testing.T) *x509.Certificate {
	t.Helper()
	conn, err := tls.Dial("tcp", p.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) // it is looked at, not trusted
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0]
}

// New connections see the new certificate and key; those that are there live on.
func TestOwnCertificateRotatesUnderLiveConnections(t *testing.T) {
	fra := newAuthority(t, "fra-1.meridian")
	p := openPort(t, map[string]*authority.Authority{"fra-1.meridian": fra}, nil)
	config := p.clientTLS(t, fra, authority.Leaf{IDs: []string{"spiffe://fra-1.meridian/gateway"}})
	before := p.dial(t, config)
	if _, err := claim(t, before, "gateway/frankfurt/fra-1"); err != nil {
		t.Fatal(err)
	}
	old := p.presented(t)
	issue(t, p.server, p.dir, authority.Leaf{Addresses: []netip.Addr{here}})
	until(t, "the new certificate is in force", func() bool { return p.credentials.Stats().Reloads == 1 })
	if p.presented(t).Equal(old) {
		t.Error("the old certificate is shown to a new connection")
	}
	for _, conn := range []string{"the old connection", "a new connection"} {
		through := before
		if conn == "a new connection" {
			through = p.dial(t, config)
		}
		if _, err := claim(t, through, "gateway/frankfurt/fra-1"); err != nil {
			t.Errorf("%s: %v", conn, err)
		}
	}
	const handshakes = 4 // two looked, and two connections were used
	until(t, "every handshake is counted", func() bool { return p.credentials.Stats().Succeeded >= handshakes })
	if s := p.credentials.Stats(); s.Succeeded != handshakes || s.ReloadsFailed != 0 {
		t.Errorf("counted %+v: the old connection should have lived on", s)
	}
}

// A trust domain changes its CA: both vouch for a while, then only the new one, also on a connection that is older.
func TestClientCARotatesUnderLiveConnections(t *testing.T) {
	old, next := newAuthority(t, "fra-1.meridian"), newAuthority(t, "fra-1.meridian")
	p := openPort(t, map[string]*authority.Authority{"fra-1.meridian": old}, nil)
	leaf := authority.Leaf{IDs: []string{"spiffe://fra-1.meridian/gateway"}}
	byOld, byNext := p.dial(t, p.clientTLS(t, old, leaf)), p.clientTLS(t, next, leaf)
	allowed := func(what string, want codes.Code, err error) {
		t.Helper()
		if got := status.Code(err); got != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	_, err := claim(t, byOld, "gateway/frankfurt/fra-1")
	allowed("by the only CA", codes.OK, err)
	_, err = claim(t, p.dial(t, byNext), "gateway/frankfurt/fra-1")
	allowed("by a CA that is not in the bundle yet", codes.Unavailable, err)

	write(t, filepath.Join(p.dir, "cas"), map[string][]byte{"fra-1.meridian.pem": append(old.Bundle(), next.Bundle()...)})
	until(t, "both vouch", func() bool { return p.credentials.Stats().Reloads == 1 })
	connection := p.dial(t, byNext)
	_, err = claim(t, connection, "gateway/frankfurt/fra-1")
	allowed("by the new CA", codes.OK, err)
	_, err = claim(t, byOld, "gateway/frankfurt/fra-1")
	allowed("by the old CA while both vouch", codes.OK, err)

	write(t, filepath.Join(p.dir, "cas"), map[string][]byte{"fra-1.meridian.pem": next.Bundle()})
	until(t, "only the new one vouches", func() bool { return p.credentials.Stats().Reloads == 2 })
	_, err = claim(t, connection, "gateway/frankfurt/fra-1")
	allowed("by the new CA alone", codes.OK, err)
	_, err = claim(t, byOld, "gateway/frankfurt/fra-1")
	allowed("by the old CA on an old connection", codes.Unauthenticated, err)
}

// A proxy's certificate expires while its connection lives: what it then asks for anew it does not get.
func TestExpiryHoldsOnALiveConnection(t *testing.T) {
	fra := newAuthority(t, "fra-1.meridian")
	p := openPort(t, map[string]*authority.Authority{"fra-1.meridian": fra}, nil)
	conn := p.dial(t, p.clientTLS(t, fra, authority.Leaf{IDs: []string{"spiffe://fra-1.meridian/gateway"}, NotAfter: time.Now().Add(3 * time.Second)}))
	if _, err := claim(t, conn, "gateway/frankfurt/fra-1"); err != nil {
		t.Fatal(err)
	}
	until(t, "the certificate has expired", func() bool {
		_, err := claim(t, conn, "gateway/frankfurt/fra-1")
		return status.Code(err) == codes.Unauthenticated
	})
	if s := p.credentials.Stats(); s.Succeeded != 1 {
		t.Errorf("counted %+v: all of it should have been on one connection", s)
	}
}

// Files that can't be used change nothing, are told once, and are taken up when they are mended.
func TestWhatCanNotBeUsedChangesNothing(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, p *port, fra *authority.Authority){
		"a key of another certificate": func(t *testing.T, p *port, _ *authority.Authority) {
			_, key, err := p.server.Issue(authority.Leaf{})
			if err != nil {
				t.Fatal(err)
			}
			write(t, p.dir, map[string][]byte{"tls.key": key})
		},
		"an expired certificate": func(t *testing.T, p *port, _ *authority.Authority) {
			issue(t, p.server, p.dir, authority.Leaf{NotAfter: time.Now().Add(-time.Minute)})
		},
		"half a certificate": func(t *testing.T, p *port, _ *authority.Authority) {
			write(t, p.dir, map[string][]byte{"tls.crt": []byte("-----BEGIN CERTIFICATE-----\nMIIB")})
		},
		"no key":    func(t *testing.T, p *port, _ *authority.Authority) { remove(t, p.dir, "tls.key") },
		"no bundle": func(t *testing.T, p *port, _ *authority.Authority) { remove(t, p.dir, "cas/fra-1.meridian.pem") },
		"a folder":  func(t *testing.T, p *port, _ *authority.Authority) { mkdir(t, p.dir, "cas/iad-1.meridian.pem") },
		"a huge file": func(t *testing.T, p *port, _ *authority.Authority) {
			write(t, p.dir, map[string][]byte{"cas/iad-1.meridian.pem": make([]byte, 5<<20)})
		},
		"an empty bundle": func(t *testing.T, p *port, _ *authority.Authority) {
			write(t, p.dir, map[string][]byte{"cas/iad-1.meridian.pem": nil})
		},
		"a bundle with another cluster's CA in it": func(t *testing.T, p *port, fra *authority.Authority) {
			write(t, p.dir, map[string][]byte{"cas/iad-1.meridian.pem": append(newAuthority(t, "iad-1.meridian").Bundle(), fra.Bundle()...)})
		},
		"a bundle of no trust domain": func(t *testing.T, p *port, _ *authority.Authority) {
			write(t, p.dir, map[string][]byte{"cas/Not A Domain.pem": newAuthority(t, "x").Bundle()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			fra := newAuthority(t, "fra-1.meridian")
			p := openPort(t, map[string]*authority.Authority{"fra-1.meridian": fra}, nil)
			config := p.clientTLS(t, fra, authority.Leaf{IDs: []string{"spiffe://fra-1.meridian/gateway"}})
			spoil(t, p, fra)
			until(t, "it is told", func() bool { return p.credentials.Stats().ReloadsFailed == 1 })
			if _, err := claim(t, p.dial(t, config), "gateway/frankfurt/fra-1"); err != nil {
				t.Errorf("the last good files should be in force: %v", err)
			}
			if err := os.RemoveAll(filepath.Join(p.dir, "cas")); err != nil {
				t.Fatal(err)
			}
			mkdir(t, p.dir, "cas")
			write(t, p.dir, map[string][]byte{"cas/fra-1.meridian.pem": fra.Bundle()})
			issue(t, p.server, p.dir, authority.Leaf{Addresses: []netip.Addr{here}})
			until(t, "it is mended", func() bool { return p.credentials.Stats().Reloads > 0 })
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
		t.Fatal(err)
	}
}

// A volume of Kubernetes shows files through a link to a folder, and swaps that link.
func TestVolumesOfKubernetesAreFollowed(t *testing.T) {
	fra, next := newAuthority(t, "fra-1.meridian"), newAuthority(t, "fra-1.meridian")
	volume := t.TempDir()
	for version, ca := range map[string]*authority.Authority{"..v1": fra, "..v2": next} {
		mkdir(t, volume, version)
		write(t, filepath.Join(volume, version), map[string][]byte{"fra-1.meridian.pem": ca.Bundle()})
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(volume, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..v1", "..data")
	link("..data/fra-1.meridian.pem", "fra-1.meridian.pem")
	p := openPort(t, nil, func(files *identity.TLS, _ *identity.Config) { files.ClientCADir = volume })

	link("..v2", "..data_tmp")
	if err := os.Rename(filepath.Join(volume, "..data_tmp"), filepath.Join(volume, "..data")); err != nil {
		t.Fatal(err)
	}
	until(t, "the swapped bundle is in force", func() bool { return p.credentials.Stats().Reloads == 1 })
	config := p.clientTLS(t, next, authority.Leaf{IDs: []string{"spiffe://fra-1.meridian/gateway"}})
	if _, err := claim(t, p.dial(t, config), "gateway/frankfurt/fra-1"); err != nil {
		t.Error(err)
	}
}
