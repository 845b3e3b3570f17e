package mesh

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/meridian-mesh/meridian/internal/testbed/authority"
)

// trustDomain is the SPIFFE trust domain of a cluster, as policies default it.
func trustDomain(cluster string) string { return cluster + ".meridian" }

// writeIdentity makes a trust domain for a cluster: its CA goes into bundles, a certificate for its gateway into dir.
func writeIdentity(cluster, dir, bundles string) error {
	domain := trustDomain(cluster)
	ca, err := authority.New(domain)
	if err != nil {
		return err
	}
	certificate, key, err := ca.Issue(authority.Leaf{IDs: []string{"spiffe://" + domain + "/gateway"}})
	if err != nil {
		return err
	}
	for path, bytes := range map[string][]byte{
		filepath.Join(bundles, domain+".pem"): ca.Bundle(),
		filepath.Join(dir, "tls.crt"):         certificate,
		filepath.Join(dir, "tls.key"):         key,
	} {
		if err := os.WriteFile(path, bytes, 0o600); err != nil {
			return fmt.Errorf("write identity of %s: %w", cluster, err)
		}
	}
	return nil
}
