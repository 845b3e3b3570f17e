package identity_test

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/meridian-mesh/meridian/internal/testbed/authority"
	"github.com/meridian-mesh/meridian/xds/identity"
)

// BenchmarkHandshake makes mutual TLS handshakes on loopback, both sides on the same cores: what a reconnecting proxy costs.
func BenchmarkHandshake(b *testing.B) {
	ca, err := authority.New("fra-1.meridian")
	if err != nil {
		b.Fatal(err)
	}
	certificate, key, err := ca.Issue(authority.Leaf{IDs: []string{"spiffe://fra-1.meridian/gateway"}, Addresses: []netip.Addr{here}})
	if err != nil {
		b.Fatal(err)
	}
	files := identity.TLS{CertificateFile: filepath.Join(b.TempDir(), "tls.crt"), KeyFile: filepath.Join(b.TempDir(), "tls.key"),
		ClientCAs: map[string]string{"fra-1.meridian": filepath.Join(b.TempDir(), "ca.pem")}, Log: slog.New(slog.DiscardHandler)}
	for path, content := range map[string][]byte{files.CertificateFile: certificate, files.KeyFile: key, files.ClientCAs["fra-1.meridian"]: ca.Bundle()} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	server, err := identity.NewCredentials(files)
	if err != nil {
		b.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for raw, err := l.Accept(); err == nil; raw, err = l.Accept() {
			go func() {
				if conn, _, err := server.ServerHandshake(raw); err == nil {
					_, _ = conn.Write([]byte{1})
					_, _ = io.Copy(io.Discard, conn)
					_ = conn.Close()
				}
			}()
		}
	}()
	client := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}} // the server's part is measured
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			conn, err := tls.Dial("tcp", l.Addr().String(), client)
			if err != nil {
				b.Error(err)
				return
			}
			if _, err := conn.Read(make([]byte, 1)); err != nil { // by then the server has accepted the certificate
				b.Error(err)
			}
			_ = conn.Close()
		}
	})
}
