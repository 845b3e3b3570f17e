package envoy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStatsAndClusters(t *testing.T) {
	p := start(t, config(t, `
static_resources:
  clusters:
  - name: pool
    load_assignment:
      cluster_name: pool
      endpoints: [{priority: 0, lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.9.9.9, port_value: 80}}}}]}]
`))
	stats, err := p.Stats(t.Context(), `^server\.(live|concurrency)$`)
	if err != nil || len(stats) != 2 || stats["server.live"] != 1 || stats["server.concurrency"] != 1 {
		t.Errorf("stats %v, %v", stats, err)
	}
	clusters, err := p.Clusters(t.Context())
	if err != nil || len(clusters.GetClusterStatuses()) != 1 {
		t.Fatalf("clusters %v, %v", clusters, err)
	}
	host := clusters.GetClusterStatuses()[0].GetHostStatuses()[0]
	if got := host.GetAddress().GetSocketAddress().GetAddress(); got != "127.9.9.9" {
		t.Errorf("the host's address is %s", got)
	}
	if rejected, err := p.Rejected(t.Context()); err != nil || len(rejected) != 0 {
		t.Errorf("rejected %q, %v; want nothing", rejected, err)
	}
}

// A listener whose filter Envoy does not know is refused, and Rejected has the counter and Envoy's reason.
func TestRejectedSaysWhatAndWhy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "listeners.yaml")
	listeners := `
resources:
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: bad
  address: {socket_address: {address: 127.0.0.1, port_value: 9}}
  filter_chains: [{filters: [{name: no.such.filter}]}]
`
	if err := os.WriteFile(file, []byte(listeners), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, config(t, fmt.Sprintf("dynamic_resources: {lds_config: {path_config_source: {path: %s}}}\n", file)))
	until(t, "Envoy refuses the listener", func() bool {
		rejected, err := p.Rejected(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(rejected, "\n")
		return strings.Contains(all, "listener_manager.lds.update_rejected: 1") && strings.Contains(all, "no.such.filter")
	})
}
