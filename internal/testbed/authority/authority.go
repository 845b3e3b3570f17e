package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"time"
)

// lifetime is how long certificates are good for.
const lifetime = 24 * time.Hour

// Authority is a certificate authority with one self-signed certificate.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// New makes the authority of a SPIFFE trust domain.
func New(trustDomain string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the authority of %s: %w", trustDomain, err)
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: trustDomain}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, URIs: []*url.URL{{Scheme: "spiffe", Host: trustDomain}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make the authority of %s: %w", trustDomain, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make the authority of %s: %w", trustDomain, err)
	}
	return &Authority{certificate, key}, nil
}

// Bundle is the authority's own certificate in PEM: what trusts it.
func (a *Authority) Bundle() []byte { return encode("CERTIFICATE", a.certificate.Raw) }

// Leaf says for whom a certificate is.
type Leaf struct {
	// IDs are its URIs, such as spiffe://TRUST-DOMAIN/gateway; of any trust domain.
	IDs []string
	// Addresses are the IP addresses that it is good for as a server.
	Addresses []netip.Addr
	// NotAfter is when it expires. Zero: in a day.
	NotAfter time.Time
}

// Issue makes a key and signs a certificate for it, both in PEM.
func (a *Authority) Issue(leaf Leaf) (certificate, key []byte, err error) {
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "leaf"}, NotBefore: a.certificate.NotBefore, NotAfter: leaf.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = a.certificate.NotAfter
	}
	for _, id := range leaf.IDs {
		u, err := url.Parse(id)
		if err != nil {
			return nil, nil, fmt.Errorf("issue a certificate: %w", err)
		}
		template.URIs = append(template.URIs, u)
	}
	for _, address := range leaf.Addresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("issue a certificate: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("issue a certificate: %w", err)
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("issue a certificate: %w", err)
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", privateDER), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// serial is random, as two certificates of one issuer must not share theirs.
func serial() *big.Int {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return new(big.Int).SetBytes(b)
}
