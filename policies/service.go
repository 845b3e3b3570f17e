package policies

// Service is what clients call: a set of models, or an HTTP, gRPC or TCP data service, served from pools in one or
// more clusters.
type Service struct {
	Metadata Metadata[ServiceName] `json:"metadata"`
	Spec     ServiceSpec           `json:"spec"`
	Origin   Origin                `json:"-"`
}

// Protocol is what a service speaks, which decides how a request finds it.
type Protocol string

// The protocols of a service.
const (
	// ProtocolOpenAI is the OpenAI HTTP API: the model named in the body chooses the service. The default.
	ProtocolOpenAI Protocol = "OpenAI"
	// ProtocolHTTP is plain HTTP, chosen by host and path.
	ProtocolHTTP Protocol = "HTTP"
	// ProtocolGRPC is gRPC, chosen by host and path ("/package.Service/").
	ProtocolGRPC Protocol = "GRPC"
	// ProtocolTCP is any TCP protocol, chosen by the gateway's port.
	ProtocolTCP Protocol = "TCP"
)

// ServiceSpec says how requests find a service and where its pools are.
type ServiceSpec struct {
	// Protocol defaults to OpenAI.
	Protocol Protocol `json:"protocol,omitempty"`
	// Models are the model names that choose this service; a name may end in "*". OpenAI only, and required there.
	Models []string `json:"models,omitempty" jsonschema:"uniqueItems=true"`
	// Hosts are the exact host names that choose this service; none: any host. HTTP and GRPC only.
	Hosts []string `json:"hosts,omitempty" jsonschema:"uniqueItems=true"`
	// Paths are the path prefixes that choose this service. Required for HTTP and GRPC. For OpenAI services they
	// name paths that carry the model instead of a body, with "{model}" in its place: "/v2/models/{model}/".
	Paths []string `json:"paths,omitempty" jsonschema:"uniqueItems=true"`
	// Port is the port on which gateways listen for a TCP service. TCP only, and required there.
	Port uint16 `json:"port,omitempty"`
	// Pools are where the service is served: at least one, at most one a cluster.
	Pools []Pool `json:"pools" jsonschema:"minItems=1"`
	// Capacity says how much a pool can take and where that is read.
	Capacity Capacity `json:"capacity,omitempty"`
	// Health says how endpoints are probed.
	Health HealthCheck `json:"health,omitempty"`
}

// Pool is the endpoints of a service in one cluster.
type Pool struct {
	// Cluster is where the pool is.
	Cluster ClusterName `json:"cluster"`
	// Endpoints are the servers' addresses, none twice. At least one, or From.
	Endpoints []Address `json:"endpoints,omitempty" jsonschema:"uniqueItems=true"`
	// From is where in the cluster the endpoints are read, in place of a list of them. The Cluster must say how its API
	// server is reached.
	From *PoolSource `json:"from,omitempty"`
}

// CapacitySource is where the serving capacity of endpoints is read.
type CapacitySource string

// The sources of capacity.
const (
	// CapacityStatic takes SlotsPerEndpoint as it is and scrapes nothing. The default, except for OpenAI services.
	CapacityStatic CapacitySource = "Static"
	// CapacityVLLM scrapes vLLM's metrics. The default for OpenAI services.
	CapacityVLLM CapacitySource = "VLLM"
)

// Capacity says how much an endpoint can take.
type Capacity struct {
	// Source defaults to VLLM for OpenAI services and to Static for others.
	Source CapacitySource `json:"source,omitempty"`
	// SlotsPerEndpoint is how many requests one endpoint serves at a time. Default 256, vLLM's own max_num_seqs.
	SlotsPerEndpoint int `json:"slotsPerEndpoint,omitempty" jsonschema:"minimum=1,maximum=1000000"`
	// QueuePerEndpoint is how many more may wait at one endpoint before the pool counts as full and requests go
	// to the next. Default 0: a full pool spills at once.
	QueuePerEndpoint int `json:"queuePerEndpoint,omitempty" jsonschema:"minimum=0,maximum=1000000"`
	// MetricsPath is where metrics are scraped. Default "/metrics".
	MetricsPath string `json:"metricsPath,omitempty" jsonschema:"pattern=^/"`
	// MetricsPort is the port that is scraped. Default: the endpoint's own.
	MetricsPort uint16 `json:"metricsPort,omitempty"`
	// Interval is the time between scrapes of one endpoint. Default 1s.
	Interval Duration `json:"interval,omitempty"`
}

// HealthCheckType is how an endpoint is probed.
type HealthCheckType string

// The types of health checks.
const (
	// HealthHTTP expects status 200 of a GET. The default for OpenAI and HTTP services.
	HealthHTTP HealthCheckType = "HTTP"
	// HealthGRPC calls grpc.health.v1.Health/Check. The default for GRPC services.
	HealthGRPC HealthCheckType = "GRPC"
	// HealthTCP opens a connection. The default for TCP services.
	HealthTCP HealthCheckType = "TCP"
)

// HealthCheck says how endpoints are probed, by the control plane and by each gateway for its own cluster.
type HealthCheck struct {
	// Type defaults by the service's protocol.
	Type HealthCheckType `json:"type,omitempty"`
	// Path is what an HTTP check asks for. Default "/health".
	Path string `json:"path,omitempty"`
	// Service is the service name in a gRPC check. Default "": the server as a whole.
	Service string `json:"service,omitempty"`
	// Interval is the time between probes of one endpoint. Default 500ms, at least 100ms.
	Interval Duration `json:"interval,omitempty"`
	// Timeout is how long a probe may take. Default 500ms, at least 50ms.
	Timeout Duration `json:"timeout,omitempty"`
	// UnhealthyThreshold is how many failures in a row make an endpoint unhealthy. Default 2.
	UnhealthyThreshold int `json:"unhealthyThreshold,omitempty" jsonschema:"minimum=1,maximum=100"`
	// HealthyThreshold is how many successes in a row make it healthy again. Default 2.
	HealthyThreshold int `json:"healthyThreshold,omitempty" jsonschema:"minimum=1,maximum=100"`
}
