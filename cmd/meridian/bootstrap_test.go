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
	tests := map[string][]string{
		"a gateway":                   {"--region", "frankfurt"},
		"a sidecar":                   {"--role", "sidecar"},
		"with an admin interface":     {"--admin", "127.0.0.1:0"},
		"two replicas":                {"--server", "127.0.0.1:1,127.0.0.1:2"},
		"state of the world":          {"--state-of-the-world"},
		"over IPv6":                   {"--server", "[::1]:18000", "--admin", "[::1]:0"},
		"names that YAML could break": {"--region", "no"},
		"some tenants":                {"--tenant", "acme,globex", "--tenant", "no"},
		"over TLS":                    {"--xds-ca", "/mesh/ca.pem", "--cert", "/mesh/tls.crt", "--key", "/mesh/tls.key", "--secret-dir", t.TempDir()},
		"over TLS, by DNS name":       {"--xds-name", "meridian.mesh", "--xds-ca", "/mesh/ca.pem", "--cert", "/mesh/tls.crt", "--key", "/mesh/tls.key", "--secret-dir", t.TempDir()},
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
