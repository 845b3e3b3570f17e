package xds

import (
	"testing"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// The names are what proxies, load reports and dashboards know: a change breaks them all.
func TestNames(t *testing.T) {
	for want, got := range map[string]string{
		"class/llama/acme+eu":        ClassCluster("llama", "acme+eu"),
		"pool/llama/fra-1":           PoolCluster(world.PoolKey{Service: "llama", Cluster: "fra-1"}),
		"gateway/fra-1":              GatewayCluster("fra-1"),
		"to/fra-1":                   HopListener("fra-1"),
		"edge/front/https":           EdgeListener("front", "https"),
		"tcp/front/https/db":         TCPListener("front", "https", "db"),
		"acme.eu.db.tcp.meridian":    TCPServerName("db", "acme+eu"),
		"any.db.tcp.meridian":        TCPServerName("db", world.AnyClass),
		"edge/front/https/client-ca": SecretClientCA("front", "https"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if HopRoutes("fra-1") != HopListener("fra-1") || EdgeRoutes("front", "https") != EdgeListener("front", "https") ||
		SecretListener("front", "https") != EdgeListener("front", "https") {
		t.Error("what belongs to a listener is called like it")
	}
}

func TestParseClassCluster(t *testing.T) {
	for name, c := range map[string]struct {
		service policies.ServiceName
		class   world.ClassID
		ok      bool
	}{
		"class/llama/any":     {"llama", "any", true},
		"class/llama/acme+eu": {"llama", "acme+eu", true},
		"pool/llama/fra-1":    {},
		"class/llama":         {},
		"class/llama/eu/x":    {},
		"class//any":          {},
		"class/llama/":        {},
		"":                    {},
	} {
		t.Run(name, func(t *testing.T) {
			service, class, ok := ParseClassCluster(name)
			if service != c.service || class != c.class || ok != c.ok {
				t.Errorf("got %q, %q, %v", service, class, ok)
			}
			if ok && ClassCluster(service, class) != name {
				t.Errorf("writes back as %q", ClassCluster(service, class))
			}
		})
	}
}
