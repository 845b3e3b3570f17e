package policies

// APIVersion is the only version of the kinds that this release reads.
const APIVersion = "meridian.dev/v1alpha1"

// The names of kinds' objects. They are DNS-1123 labels, unique within their kind.
type (
	// RegionName names a Region: a place with one jurisdiction.
	RegionName string
	// ClusterName names a Cluster: one Kubernetes cluster or one list of bare endpoints, in one Region.
	ClusterName string
	// ServiceName names a Service: what clients call, wherever it is served.
	ServiceName string
	// ResidencyName names a Residency rule.
	ResidencyName string
	// TrafficName names a Traffic policy.
	TrafficName string
	// GatewayName names a Gateway: the listeners that a set of proxies gets.
	GatewayName string
)

// Tenant is the identity of a calling organisation, as the gateway learns it.
type Tenant string

// DataLabel is the value of a label that a client puts on the data of a request, such as "pii".
type DataLabel string

// Kind is the kind of a policy document.
type Kind string

// The kinds of APIVersion.
const (
	KindRegion    Kind = "Region"
	KindCluster   Kind = "Cluster"
	KindService   Kind = "Service"
	KindResidency Kind = "Residency"
	KindTraffic   Kind = "Traffic"
	KindGateway   Kind = "Gateway"
)

// Metadata is the part of an object's metadata that Meridian reads.
type Metadata[N ~string] struct {
	// Name is unique within the kind: a DNS-1123 label of at most 63 characters.
	Name N `json:"name" jsonschema:"maxLength=63,pattern=^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
	// Labels are free for the operator's own use.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are free for the operator's own use.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Origin says where an object was read: what a later error about it can point at.
type Origin struct {
	// File is the name that the object's bytes were given under.
	File string
	// Line and Column are 1-based positions of the document's first key.
	Line, Column int
}
