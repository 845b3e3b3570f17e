package verify

import (
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/meridian-mesh/meridian/xds"
)

// config is a snapshot decoded: what a proxy would hold, by name.
type config struct {
	listeners map[string]*listener.Listener
	routes    map[string]*route.RouteConfiguration
	clusters  map[string]*cluster.Cluster
	endpoints map[string]*endpoint.ClusterLoadAssignment
	secrets   map[string]*tls.Secret
}

// message is a resource that can check itself.
type message interface {
	proto.Message
	ValidateAll() error
}

// decode reads a resource's bytes; nil for a type that no proxy is sent.
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
		return nil, nil
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

// named is the name that a message gives itself.
func named(m message) string {
	switch m := m.(type) {
	case *endpoint.ClusterLoadAssignment:
		return m.GetClusterName()
	case interface{ GetName() string }:
		return m.GetName()
	}
	return ""
}
