package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/envoy"
)

// The real Envoy accepts what bootstrap prints.
func TestBootstrapIsAccepted(t *testing.T) {
	dir := t.TempDir() // its files are followed, and need not be there yet
	over := func(proof ...string) []string {
		return append([]string{"--xds-ca", dir + "/ca.pem", "--secret-dir", dir}, proof...)
	}
	tests := map[string][]string{
		"a gateway":                   {"--region", "frankfurt"},
		"a sidecar":                   {"--role", "sidecar"},
		"with an admin interface":     {"--admin", "127.0.0.1:0"},
		"two replicas":                {"--server", "127.0.0.1:1,127.0.0.1:2"},
		"state of the world":          {"--state-of-the-world"},
		"over IPv6":                   {"--server", "[::1]:18000", "--admin", "[::1]:0"},
		"names that YAML could break": {"--region", "no"},
		"some tenants":                {"--tenant", "acme,globex", "--tenant", "no"},
		"over TLS":                    over("--cert", dir+"/tls.crt", "--key", dir+"/tls.key"),
		"over TLS, by token":          over("--token", dir+"/token"),
		"over TLS, of a DNS name":     over("--token", dir+"/token", "--xds-name", "meridian.mesh"),
	}
	for name, flags := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			if code := run(t.Context(), append([]string{"bootstrap", "--cluster", "fra-1", "--id", "p"}, flags...), &out, &errs); code != 0 {
				t.Fatalf("exit code %d: %s", code, errs.String())
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := envoy.Validate(ctx, []byte(out.String())); err != nil {
				t.Error(err)
			}
		})
	}
}
