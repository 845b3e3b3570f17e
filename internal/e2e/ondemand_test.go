package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	admin "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/on_demand/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoregistry"
	"sigs.k8s.io/yaml"

	"github.com/meridian-mesh/meridian/internal/testbed/dataserver"
	"github.com/meridian-mesh/meridian/internal/testbed/envoy"
	"github.com/meridian-mesh/meridian/internal/testbed/loopback"
	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
	"github.com/meridian-mesh/meridian/xds/serve"
)

// onDemandBootstrap is that of an Envoy which asks for listeners, and for nothing else before a request needs it. In it are
// the ports of the admin interface and of the xDS server.
const onDemandBootstrap = `
node: {id: lazy-1, cluster: shop-1}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}
dynamic_resources:
  lds_config: {ads: {}, resource_api_version: V3}
  ads_config:
    api_type: DELTA_GRPC
    transport_api_version: V3
    grpc_services: [{envoy_grpc: {cluster_name: xds}}]
static_resources:
  clusters:
  - name: xds
    connect_timeout: 1s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: xds
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}]}]
`

// onDemandListener looks for virtual hosts and clusters that it lacks, for longer than the tests' client waits: who is not
// told that something is not there fails. In it is its port.
const onDemandListener = `
name: edge
address: {socket_address: {address: 127.0.0.1, port_value: %d}}
filter_chains:
- filters:
  - name: http
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      stat_prefix: edge
      rds: {route_config_name: shops, config_source: {ads: {}, resource_api_version: V3}}
      http_filters:
      - name: on-demand
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.on_demand.v3.OnDemand
          odcds: {source: {ads: {}, resource_api_version: V3}, timeout: 120s}
      - name: router
        typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
`

// resource is one that is written in YAML.
func resource(t *testing.T, typ xds.Type, name, text string, options ...xds.Option) *xds.Resource {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByURL(string(typ))
	if err != nil {
		t.Fatal(err)
	}
	message := kind.New().Interface()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(asJSON, message); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	r, err := xds.NewResource(typ, name, message, options...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// virtualHost leads some domains to a cluster. Envoy asks for it by any of them.
func virtualHost(t *testing.T, name, cluster string, domains ...string) *xds.Resource {
	t.Helper()
	aliases := make([]string, len(domains))
	for i, d := range domains {
		aliases[i] = "shops/" + d
	}
	return resource(t, xds.TypeVirtualHost, "shops/"+name,
		fmt.Sprintf(`{name: shops/%s, domains: [%s], routes: [{match: {prefix: "/"}, route: {cluster: %s}}]}`, name, strings.Join(domains, ", "), cluster),
		xds.WithAliases(aliases...))
}

// upstream is a cluster, and the one server in it.
func upstream(t *testing.T, s *dataserver.Server) []*xds.Resource {
	t.Helper()
	return []*xds.Resource{
		resource(t, xds.TypeCluster, s.Name(), fmt.Sprintf(
			`{name: %s, type: EDS, connect_timeout: 1s, eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}}`, s.Name())),
		resource(t, xds.TypeEndpoint, s.Name(), fmt.Sprintf(
			`{cluster_name: %s, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %d}}}}]}]}`,
			s.Name(), s.Addr().Addr(), s.Addr().Port())),
	}
}

// lazy is an Envoy that learns on demand from an xDS server of its own, which serves what the test publishes.
type lazy struct {
	*envoy.Process
	t        *testing.T
	server   *serve.Server
	cache    *cache.Cache
	snapshot *xds.Snapshot
	xds      netip.AddrPort
	edge     netip.AddrPort
	stop     func() // ends the xDS server
}

// startLazy starts both, with resources beside the listener.
func startLazy(t *testing.T, resources ...*xds.Resource) *lazy {
	t.Helper()
	l := &lazy{t: t, xds: free(t), edge: free(t)}
	resources = append(resources,
		resource(t, xds.TypeListener, "edge", fmt.Sprintf(onDemandListener, l.edge.Port())),
		resource(t, xds.TypeRoute, "shops", `{name: shops, vhds: {config_source: {ads: {}, resource_api_version: V3}}}`))
	l.snapshot = xds.NewSnapshot("gateway/town/shop-1", resources)
	l.serve()
	t.Cleanup(func() { l.stop() })
	port := free(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var err error
	if l.Process, err = envoy.Start(ctx, envoy.Config{Admin: port, Bootstrap: fmt.Appendf(nil, onDemandBootstrap, port.Port(), l.xds.Port())}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(l.Log())
		}
		if err := l.Process.Stop(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func free(t *testing.T) netip.AddrPort {
	t.Helper()
	port, err := loopback.Free(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// serve runs an xDS server that knows nothing but the snapshot, until stop.
func (l *lazy) serve() {
	l.t.Helper()
	l.cache = &cache.Cache{}
	l.cache.Publish(l.snapshot, time.Now())
	s, err := serve.New(serve.Config{Cache: l.cache, Log: slog.New(slog.DiscardHandler),
		RegionOf: func(policies.ClusterName) (policies.RegionName, bool) { return "town", true }})
	if err != nil {
		l.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", l.xds.String())
	if err != nil {
		l.t.Fatal(err)
	}
	g := grpc.NewServer(s.Options()...)
	s.Register(g)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- s.Run(ctx) }()
	go func() { ended <- g.Serve(s.Listener(listener)) }()
	l.server = s
	l.stop = func() {
		g.Stop()
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			l.t.Error(err)
		}
	}
}

// publish puts resources into the snapshot.
func (l *lazy) publish(put ...*xds.Resource) {
	l.snapshot = l.snapshot.With(put, nil)
	l.cache.Publish(l.snapshot, time.Now())
}

// withdraw takes a virtual host out of it.
func (l *lazy) withdraw(name string) {
	l.snapshot = l.snapshot.With(nil, []*xds.Resource{l.snapshot.Resource(xds.TypeVirtualHost, "shops/"+name)})
	l.cache.Publish(l.snapshot, time.Now())
}

// ask is who serves a domain, or the status of the refusal.
func (l *lazy) ask(domain string) string {
	l.t.Helper()
	q, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, "http://"+l.edge.String()+"/", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	q.Host = domain
	response, err := client.Do(q)
	if err != nil {
		l.t.Fatalf("ask for %s: %v", domain, err)
	}
	if err := response.Body.Close(); err != nil {
		l.t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Sprint(response.StatusCode)
	}
	return response.Header.Get("x-served-by")
}

// answers is what a domain must answer now.
func (l *lazy) answers(domain, want string) {
	l.t.Helper()
	if got := l.ask(domain); got != want {
		l.t.Errorf("%s: %s, want %s", domain, got, want)
	}
}

// comesToAnswer is what a domain must answer before long.
func (l *lazy) comesToAnswer(domain, want string) {
	l.t.Helper()
	got := l.ask(domain)
	for deadline := time.Now().Add(20 * time.Second); got != want && time.Now().Before(deadline); got = l.ask(domain) {
	}
	if got != want {
		l.t.Fatalf("%s: %s, want %s", domain, got, want)
	}
}

// settles waits until the Envoy has accepted all that it asked for.
func (l *lazy) settles() {
	l.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(20 * time.Second); ; {
		status := l.server.Status()
		if len(status) == 1 && status[0].State == serve.Synced {
			return
		}
		select {
		case <-deadline:
			l.t.Fatalf("not in sync: %+v", status)
		case <-tick.C:
		}
	}
}

// has says whether the Envoy has a cluster.
func (l *lazy) has(cluster string) bool {
	l.t.Helper()
	clusters, err := l.Clusters(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return slices.ContainsFunc(clusters.GetClusterStatuses(), func(c *admin.ClusterStatus) bool { return c.GetName() == cluster })
}

// An Envoy asks for a virtual host and a cluster when a request needs them. It is told at once what is not there, and of
// what comes to be there later.
func TestEnvoyLearnsOnDemand(t *testing.T) {
	servers, _ := data(t, dataserver.HTTP, []mesh.Cluster{{Name: "books"}, {Name: "tools"}})
	l := startLazy(t, slices.Concat(upstream(t, servers["books"]), upstream(t, servers["tools"]), []*xds.Resource{
		virtualHost(t, "books", "books", "books.example", "www.books.example"),
		virtualHost(t, "ghost", "ghost", "ghost.example"),
	})...)
	if l.has("books") || l.has("tools") {
		t.Error("a cluster came before anyone asked for it")
	}
	l.answers("books.example", "books")
	l.answers("www.books.example", "books")
	if !l.has("books") || l.has("tools") {
		t.Error("one request needed books, and that came with something else")
	}

	l.answers("nowhere.example", "404")
	l.answers("nowhere.example", "404")
	l.answers("ghost.example", "503") // its cluster is not there; Envoy 1.40 would not ask a second time

	l.publish(virtualHost(t, "nowhere", "books", "nowhere.example"), virtualHost(t, "books", "tools", "books.example", "www.books.example"))
	l.comesToAnswer("nowhere.example", "books")
	l.comesToAnswer("books.example", "tools")

	l.withdraw("books")
	l.comesToAnswer("books.example", "404")

	l.settles()
	if rejected, err := l.Rejected(t.Context()); err != nil || len(rejected) > 0 {
		t.Errorf("Envoy has rejected configuration: %v, %v", rejected, err)
	}
}
