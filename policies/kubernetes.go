package policies

// Kubernetes says how a member cluster's API server is reached: exactly one of Kubeconfig, Secret and InCluster.
type Kubernetes struct {
	// Kubeconfig is a file on the control plane's disk. It is read again when it changes.
	Kubeconfig string `json:"kubeconfig,omitempty" jsonschema:"pattern=^/"`
	// Secret holds a kubeconfig, in the cluster in which the control plane runs. It is read again when it changes. It must
	// not name files or programs: whoever may write it would have them read, or run, by the control plane.
	Secret *SecretKey `json:"secret,omitempty"`
	// Context is the one in the kubeconfig to use. Default: its current one.
	Context string `json:"context,omitempty"`
	// InCluster says that the control plane runs in this cluster, with a service account of its own.
	InCluster bool `json:"inCluster,omitempty"`
	// StaleAfter is how long readiness counts after the API server was last heard. After that only probes say how endpoints
	// are; the endpoints themselves stay. Default 1m.
	StaleAfter Duration `json:"staleAfter,omitempty"`
	// PodsUnreachable says that the control plane can't dial the cluster's pods. They are not probed or scraped then: what
	// the cluster says of their readiness counts alone, and their load is not known.
	PodsUnreachable bool `json:"podsUnreachable,omitempty"`
}

// SecretKey names one entry of a Secret.
type SecretKey struct {
	// Namespace is the Secret's.
	Namespace string `json:"namespace" jsonschema:"maxLength=63,pattern=^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
	// Name is the Secret's.
	Name string `json:"name" jsonschema:"maxLength=253,pattern=^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"`
	// Key is the entry. Default "kubeconfig".
	Key string `json:"key,omitempty" jsonschema:"maxLength=253,pattern=^[-._a-zA-Z0-9]+$"`
}

// PoolSourceKind is what in a cluster lists a pool's endpoints.
type PoolSourceKind string

// The kinds of sources.
const (
	// FromService takes the EndpointSlices of a Kubernetes Service. The default.
	FromService PoolSourceKind = "Service"
	// FromServiceImport takes the EndpointSlices that a Multi-Cluster Services implementation keeps for a ServiceImport.
	FromServiceImport PoolSourceKind = "ServiceImport"
	// FromInferencePool takes the pods that an InferencePool of the Gateway API Inference Extension selects.
	FromInferencePool PoolSourceKind = "InferencePool"
)

// PoolSource names an object in the pool's cluster whose endpoints are the pool's. They come and go with it.
type PoolSource struct {
	// Kind defaults to Service.
	Kind PoolSourceKind `json:"kind,omitempty"`
	// Namespace is the object's.
	Namespace string `json:"namespace" jsonschema:"maxLength=63,pattern=^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
	// Name is the object's.
	Name string `json:"name" jsonschema:"maxLength=63,pattern=^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
	// Port is the name of the Service's port. Default: its only one. An InferencePool needs none: all its target ports are
	// endpoints.
	Port string `json:"port,omitempty" jsonschema:"maxLength=63"`
}
