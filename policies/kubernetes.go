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
	// Accelerators says how the cluster's accelerators are counted. Default: those of NVIDIA, AMD and Intel are.
	Accelerators *Accelerators `json:"accelerators,omitempty"`
}

// Accelerators says how a cluster's accelerators are counted, beyond what is well known: nvidia.com/gpu, MIG profiles, amd.com/gpu,
// gpu.intel.com/*, and devices of DRA drivers whose name begins with gpu., npu., tpu. or gaudi.
type Accelerators struct {
	// Disabled says that they are not counted: nodes, pods and what has to do with devices are then not read.
	Disabled bool `json:"disabled,omitempty"`
	// Resources are further extended resources whose unit is a device.
	Resources []AcceleratorResource `json:"resources,omitempty"`
	// Drivers are further DRA drivers of accelerators.
	Drivers []string `json:"drivers,omitempty" jsonschema:"uniqueItems=true"`
	// DeviceClasses say what the cluster's own device classes select.
	DeviceClasses []AcceleratorClass `json:"deviceClasses,omitempty"`
	// Tolerate are keys of taints that whoever wants accelerators tolerates, so that nodes with them count.
	Tolerate []string `json:"tolerate,omitempty" jsonschema:"uniqueItems=true"`
}

// Counted says whether accelerators are counted. They are where nothing is said of them.
func (a *Accelerators) Counted() bool { return a == nil || !a.Disabled }

// AcceleratorResource is an extended resource whose unit is a device.
type AcceleratorResource struct {
	// Name is that of the resource: google.com/tpu.
	Name string `json:"name"`
	// ProductLabel is the label of nodes that says what device it is. Default: the product is the resource's name.
	ProductLabel string `json:"productLabel,omitempty"`
}

// AcceleratorClass says what a DeviceClass selects, in words that need no CEL.
type AcceleratorClass struct {
	// Name is the DeviceClass's.
	Name string `json:"name"`
	// Driver is the DRA driver whose devices it selects.
	Driver string `json:"driver"`
	// Partitions says that it selects MIG partitions, not whole devices.
	Partitions bool `json:"partitions,omitempty"`
	// Product is the only one that it selects. Default: any.
	Product string `json:"product,omitempty"`
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
