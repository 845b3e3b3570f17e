package gpu

import (
	"strconv"
	"strings"
)

const (
	resourceNVIDIA = "nvidia.com/gpu"
	resourceShared = "nvidia.com/gpu.shared"
	resourceAMD    = "amd.com/gpu"
	prefixMIG      = "nvidia.com/mig-"
	prefixIntel    = "gpu.intel.com/"
	suffixShared   = ".shared"

	labelGKEPartition = "cloud.google.com/gke-gpu-partition-size"
	labelGKEClients   = "cloud.google.com/gke-max-shared-clients-per-gpu"
)

var (
	// notDevices are parts of the names of Intel's resources whose unit is not a device.
	notDevices = []string{"millicores", "memory", "tiles", "monitoring"}

	// labels that name the product, what the vendors' tools find out before what clouds say of a machine type.
	labelsNVIDIA = []string{"nvidia.com/gpu.product"}
	labelsAMD    = []string{"amd.com/gpu.product-name", "beta.amd.com/gpu.product-name", "amd.com/gpu.device-id", "beta.amd.com/gpu.device-id"}
	labelsIntel  = []string{"gpu.intel.com/product"}
	labelsCloud  = []string{"karpenter.k8s.aws/instance-gpu-name", "eks.amazonaws.com/instance-gpu-name", "karpenter.azure.com/sku-gpu-name"}
	labelsGKE    = []string{"cloud.google.com/gke-accelerator"}
)

// productOf names what a node's extended resource counts. Where no label says it, it is the resource's name.
func (s Settings) productOf(resource string, labels labelSet) string {
	bare, shared := strings.CutSuffix(resource, suffixShared)
	profile, mig := strings.CutPrefix(bare, prefixMIG)
	product := ""
	switch r := s.configured(resource); {
	case r != nil:
		product = labels.Get(r.ProductLabel)
	case mig:
		product = migProduct(bare, profile, labels)
	case bare == resourceNVIDIA:
		product = labels.first(labelsNVIDIA, labelsCloud)
		if product == "" {
			product = gkeProduct(labels)
		}
	case resource == resourceAMD:
		product = labels.first(labelsAMD, labelsCloud, labelsGKE)
	default:
		product = labels.first(labelsIntel, labelsCloud, labelsGKE)
	}
	if product == "" {
		return resource
	}
	if shared && !strings.HasSuffix(product, "-SHARED") {
		return product + "-SHARED" // as NVIDIA's own label says where the resource keeps its name
	}
	return product
}

// migProduct names a MIG partition as NVIDIA's label does, with the label or without.
func migProduct(resource, profile string, labels labelSet) string {
	if product := labels.Get(resource + ".product"); product != "" {
		return product
	}
	if whole := labels.first(labelsNVIDIA, labelsCloud, labelsGKE); whole != "" {
		return whole + "-MIG-" + profile
	}
	return ""
}

// gkeProduct names a GPU of GKE, which may be cut up or shared under the one resource name.
func gkeProduct(labels labelSet) string {
	product := labels.first(labelsGKE)
	if product == "" {
		return ""
	}
	if profile := labels.Get(labelGKEPartition); profile != "" {
		product += "-MIG-" + profile
	}
	if positive(labels.Get(labelGKEClients)) > 1 {
		product += "-SHARED"
	}
	return product
}

// sharesOf is how many units of a resource are one device: above 1 where devices are shared by time-slicing or MPS.
func sharesOf(resource string, labels labelSet) int64 {
	bare := strings.TrimSuffix(resource, suffixShared)
	if bare != resourceNVIDIA && !strings.HasPrefix(bare, prefixMIG) {
		return 1
	}
	return max(positive(labels.Get(bare+".replicas")), positive(labels.Get(labelGKEClients)))
}

// positive reads a count from a label; what is none is 1.
func positive(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 1
	}
	return max(n, 1)
}
