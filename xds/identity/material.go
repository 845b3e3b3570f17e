package identity

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
	"google.golang.org/grpc/credentials"
)

// maxFileBytes is several times the largest chain or bundle worth reading.
const maxFileBytes = 4 << 20

// contents are the bytes of all files that make a material, by path.
type contents map[string][]byte

// digest tells contents apart.
func (c contents) digest() [sha256.Size]byte {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(h, "%q %d\n", path, len(c[path]))
		h.Write(c[path])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// read reads all files as they are now. bundles are the paths of the bundles by trust domain.
func (t TLS) read() (found contents, bundles map[string]string, err error) {
	bundles, err = t.bundlePaths()
	if err != nil {
		return nil, nil, err
	}
	found = contents{}
	for _, path := range append(slices.Sorted(maps.Values(bundles)), t.CertificateFile, t.KeyFile) {
		if found[path], err = readFile(path); err != nil {
			return nil, nil, err
		}
	}
	return found, bundles, nil
}

// bundlePaths are the files given by name, and those in the folder.
func (t TLS) bundlePaths() (map[string]string, error) {
	paths := maps.Clone(t.ClientCAs)
	if t.ClientCADir == "" {
		return paths, nil
	}
	if paths == nil {
		paths = map[string]string{}
	}
	entries, err := os.ReadDir(t.ClientCADir)
	if err != nil {
		return nil, fmt.Errorf("read the folder of client CAs: %w", err)
	}
	for _, e := range entries { // a volume of Kubernetes has hidden folders beside its links
		if domain, isBundle := strings.CutSuffix(e.Name(), ".pem"); isBundle && !strings.HasPrefix(domain, ".") {
			paths[domain] = filepath.Join(t.ClientCADir, e.Name())
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("the folder of client CAs %s holds no TRUST-DOMAIN.pem", t.ClientCADir)
	}
	return paths, nil
}

func readFile(path string) ([]byte, error) {
	switch info, err := os.Stat(path); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFileBytes:
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxFileBytes)
	}
	return os.ReadFile(path)
}

// material is what handshakes are made with. It never changes.
type material struct {
	credentials credentials.TransportCredentials
	bundles     *x509bundle.Set
	expires     time.Time // of our own certificate
}

// parse makes the material of contents.
func (t TLS) parse(found contents, bundles map[string]string) (*material, error) {
	pair, err := tls.X509KeyPair(found[t.CertificateFile], found[t.KeyFile])
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", t.CertificateFile, t.KeyFile, err)
	}
	if time.Now().After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("certificate %s expired at %s", t.CertificateFile, pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	m := &material{expires: pair.Leaf.NotAfter}
	if m.bundles, err = parseBundles(found, bundles); err != nil {
		return nil, err
	}
	m.credentials = credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, ClientAuth: tls.RequestClientCert, VerifyConnection: m.verifyConnection,
		SessionTicketsDisabled: true, // a resumed session would not prove anew that the client has its key
	})
	return m, nil
}

// parseBundles refuses a CA that stands in two bundles: one cluster's CA could then vouch for another's proxies.
func parseBundles(found contents, paths map[string]string) (*x509bundle.Set, error) {
	set, owners := x509bundle.NewSet(), map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		domain, err := spiffeid.TrustDomainFromString(name)
		if err != nil || domain.Name() != name {
			return nil, fmt.Errorf("client CAs %s: %q is not a SPIFFE trust domain", paths[name], name)
		}
		bundle, err := x509bundle.Parse(domain, found[paths[name]])
		if err != nil {
			return nil, fmt.Errorf("client CAs %s: %w", paths[name], err)
		}
		if bundle.Empty() {
			return nil, fmt.Errorf("client CAs %s: no certificate in it", paths[name])
		}
		for _, ca := range bundle.X509Authorities() {
			key := string(ca.RawSubjectPublicKeyInfo)
			if other, shared := owners[key]; shared && other != name {
				return nil, fmt.Errorf("client CAs %s: the CA %q is that of trust domain %s too: each needs its own", paths[name], ca.Subject, other)
			}
			owners[key] = name
		}
		set.Add(bundle)
	}
	return set, nil
}

// verifyConnection accepts a client without a certificate, which must prove who it is otherwise.
func (m *material) verifyConnection(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return nil
	}
	_, err := m.verify(state.PeerCertificates)
	return err
}

// verify gives the SPIFFE ID of a client certificate that chains to the bundle of its own trust domain.
func (m *material) verify(chain []*x509.Certificate) (spiffeid.ID, error) {
	id, _, err := x509svid.Verify(chain, m.bundles)
	if err != nil {
		return spiffeid.ID{}, fmt.Errorf("client certificate of %q: %w", id, err)
	}
	if id.Path() == "" {
		return spiffeid.ID{}, errors.New("client certificate names a whole trust domain, and no proxy in it")
	}
	return id, nil
}
