package mesh

import (
	"log/slog"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/modelserver"
	"github.com/meridian-mesh/meridian/world"
)

// Config says what a mesh is made of.
type Config struct {
	// Clusters are the members, each in a region of its own or a shared one.
	Clusters []Cluster
	// Policies are further documents in YAML: Residency, Traffic, further Services.
	Policies string
	// Service is the spec of the service "llama" without its pools, in YAML flow style; its models and what else is not
	// to be default. Default "{models: [llama]}".
	Service string
	// Server is what the model servers have in common; names, addresses and models are filled in.
	Server modelserver.Config
	// Delay is the one-way delay between two regions. Nil: none.
	Delay func(from, to string) time.Duration
	// Gateway is further fields of the Gateway spec, in YAML flow style without braces.
	Gateway string
	// GeoService locates clients by the control plane's geo service instead of Envoy's geoip filter.
	GeoService bool
	// TLS makes gateways serve clients over TLS, with the certificate that they also show each other.
	TLS bool
	// Flat gives clusters no gateway addresses, so that servers are dialled directly.
	Flat bool
	// Kubernetes gives each cluster a real API server, which lists its servers; they then have addresses in 10.NETWORK.0.0/16, which
	// must be local: see package netns.
	Kubernetes bool
	// StateOfTheWorld makes gateways use that protocol instead of delta.
	StateOfTheWorld bool
	// Log is for the control plane. Default: discards.
	Log *slog.Logger
}

// Cluster is one member cluster.
type Cluster struct {
	Name, Region string
	// Cloud is the region's key in the table of the clouds, as "aws/eu-central-1".
	Cloud string
	// Network is the second octet of the cluster's addresses: 127.NETWORK.0.0/16.
	Network byte
	// Servers is how many model servers it has.
	Servers int
	// Tenants are those that its gateway serves. Default: all.
	Tenants world.Tenants
	// Envoy is the version of its gateway. Default: the one that tests run.
	Envoy string
}

const (
	// ServiceName is the service that every mesh has.
	ServiceName = "llama"
	// Model is the model that its servers serve.
	Model = "llama"
)
