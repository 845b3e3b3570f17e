package verify

import (
	"fmt"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/meridian-mesh/meridian/xds"
)

// config is a snapshot decoded: what a proxy would hold, by name. Route configurations are large, and are decoded when
// they are asked for.
type config struct {
	snapshot  *xds.Snapshot
	listeners map[string]*listener.Listener
	clusters  map[string]*cluster.Cluster
	endpoints map[string]*endpoint.ClusterLoadAssignment
	secrets   map[string]*tls.Secret
	routes    map[string]*route.RouteConfiguration
}

func newConfig(s *xds.Snapshot) *config {
	return &config{snapshot: s, listeners: map[string]*listener.Listener{}, clusters: map[string]*cluster.Cluster{},
		endpoints: map[string]*endpoint.ClusterLoadAssignment{}, secrets: map[string]*tls.Secret{}, routes: map[string]*route.RouteConfiguration{}}
}

// message is a resource that can check itself.
type message interface {
	proto.Message
	ValidateAll() error
}

// decode reads a resource's bytes.
func decode(r *xds.Resource) (message, error) {
	var m message
	switch r.Type {
	case xds.TypeListener:
		m = &listener.Listener{}
	case xds.TypeRoute:
		m = &route.RouteConfiguration{}
	case xds.TypeCluster:
		m = &cluster.Cluster{}
	case xds.TypeEndpoint:
		m = &endpoint.ClusterLoadAssignment{}
	case xds.TypeSecret:
		m = &tls.Secret{}
	default:
		return nil, fmt.Errorf("no proxy is sent resources of type %q", r.Type)
	}
	return m, proto.Unmarshal(r.Bytes, m)
}

func (c *config) put(name string, m message) {
	switch m := m.(type) {
	case *listener.Listener:
		c.listeners[name] = m
	case *route.RouteConfiguration:
		c.routes[name] = m
	case *cluster.Cluster:
		c.clusters[name] = m
	case *endpoint.ClusterLoadAssignment:
		c.endpoints[name] = m
	case *tls.Secret:
		c.secrets[name] = m
	}
}

// has says whether a route configuration is there.
func (c *config) has(routes string) bool { return c.snapshot.Resource(xds.TypeRoute, routes) != nil }

// routeConfiguration decodes a route configuration when it is first asked for.
func (c *config) routeConfiguration(name string) (*route.RouteConfiguration, bool) {
	if m, ok := c.routes[name]; ok {
		return m, true
	}
	r := c.snapshot.Resource(xds.TypeRoute, name)
	if r == nil {
		return nil, false
	}
	m := &route.RouteConfiguration{}
	if err := proto.Unmarshal(r.Bytes, m); err != nil {
		return nil, false // it was found to be right when it was new
	}
	c.routes[name] = m
	return m, true
}

// version is the version of a resource; empty where there is none.
func (c *config) version(t xds.Type, name string) string {
	if r := c.snapshot.Resource(t, name); r != nil {
		return r.Version
	}
	return ""
}

// nameOf is the name that a message gives itself.
func nameOf(m message) string {
	switch m := m.(type) {
	case *endpoint.ClusterLoadAssignment:
		return m.GetClusterName()
	case interface{ GetName() string }:
		return m.GetName()
	}
	return ""
}
