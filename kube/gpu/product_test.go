package gpu

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	core "k8s.io/api/core/v1"

	"github.com/meridian-mesh/meridian/world"
)

// What a node has is told apart as its pods see it: a share or a partition of a GPU is not a GPU.
func TestProducts(t *testing.T) {
	const a100, mig = "NVIDIA-A100-SXM4-40GB", "nvidia.com/mig-1g.5gb"
	tpu := Settings{Resources: []Resource{{Name: "google.com/tpu", ProductLabel: "cloud.google.com/gke-tpu-accelerator"}, {Name: "example.com/npu"}}}
	for name, c := range map[string]struct {
		resource core.ResourceName
		labels   map[string]string
		product  string
		shares   int64
	}{
		"a whole GPU":                      {resourceNVIDIA, map[string]string{"nvidia.com/gpu.product": h100, "nvidia.com/gpu.replicas": "1"}, h100, 1},
		"time-sliced, the name kept":       {resourceNVIDIA, map[string]string{"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"}, "Tesla-T4-SHARED", 4},
		"time-sliced, renamed":             {resourceShared, map[string]string{"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.replicas": "4"}, "Tesla-T4-SHARED", 4},
		"MIG, all alike":                   {resourceNVIDIA, map[string]string{"nvidia.com/gpu.product": a100 + "-MIG-1g.5gb"}, a100 + "-MIG-1g.5gb", 1},
		"MIG, mixed":                       {mig, map[string]string{"nvidia.com/gpu.product": a100}, a100 + "-MIG-1g.5gb", 1},
		"MIG, mixed, with its own label":   {mig, map[string]string{"nvidia.com/gpu.product": a100, mig + ".product": "A100-MIG"}, "A100-MIG", 1},
		"MIG, time-sliced":                 {mig + ".shared", map[string]string{"nvidia.com/gpu.product": a100, mig + ".replicas": "2"}, a100 + "-MIG-1g.5gb-SHARED", 2},
		"GKE":                              {resourceNVIDIA, map[string]string{"cloud.google.com/gke-accelerator": "nvidia-l4"}, "nvidia-l4", 1},
		"GKE, shared":                      {resourceNVIDIA, map[string]string{"cloud.google.com/gke-accelerator": "nvidia-l4", labelGKEClients: "3"}, "nvidia-l4-SHARED", 3},
		"GKE, MIG":                         {resourceNVIDIA, map[string]string{"cloud.google.com/gke-accelerator": "nvidia-tesla-a100", labelGKEPartition: "1g.5gb"}, "nvidia-tesla-a100-MIG-1g.5gb", 1},
		"EKS":                              {resourceNVIDIA, map[string]string{"karpenter.k8s.aws/instance-gpu-name": "h100"}, "h100", 1},
		"no label":                         {resourceNVIDIA, nil, resourceNVIDIA, 1},
		"a label that is no number":        {resourceNVIDIA, map[string]string{"nvidia.com/gpu.replicas": "many"}, resourceNVIDIA, 1},
		"AMD":                              {resourceAMD, map[string]string{"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.device-id": "74a1"}, "AMD_Instinct_MI300X_OAM", 1},
		"AMD, by number":                   {resourceAMD, map[string]string{"amd.com/gpu.device-id": "74a1"}, "74a1", 1},
		"Intel":                            {"gpu.intel.com/xe", map[string]string{"gpu.intel.com/product": "Max_1100"}, "Max_1100", 1},
		"configured":                       {"google.com/tpu", map[string]string{"cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice"}, "tpu-v5p-slice", 1},
		"configured, without a label":      {"example.com/npu", map[string]string{"nvidia.com/gpu.product": h100}, "example.com/npu", 1},
		"Intel: thousandths of a GPU":      {"gpu.intel.com/millicores", nil, "", 0},
		"Intel: memory":                    {"gpu.intel.com/memory.max", nil, "", 0},
		"Intel: monitors":                  {"gpu.intel.com/i915_monitoring", nil, "", 0},
		"not an accelerator":               {"rdma/ib", nil, "", 0},
		"not configured, so not of a kind": {"example.com/fpga", nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			n := NodeOf(node("n", unlabelled, bare, has(c.resource, "8"), func(n *core.Node) { n.Labels = c.labels }), tpu)
			if c.product == "" {
				equal(t, 0, len(n.devices))
				return
			}
			equal(t, []any{c.product, c.shares, int64(8)}, []any{n.devices[0].product.String(), n.devices[0].shares, n.devices[0].n})
		})
	}
}

func TestClasses(t *testing.T) {
	for _, c := range []struct {
		key, value string
		want       world.CapacityClass
	}{
		{"karpenter.sh/capacity-type", "spot", world.Spot},
		{"karpenter.sh/capacity-type", "on-demand", world.OnDemand},
		{"karpenter.sh/capacity-type", "reserved", world.Reserved},
		{"eks.amazonaws.com/capacityType", "SPOT", world.Spot},
		{"eks.amazonaws.com/capacityType", "ON_DEMAND", world.OnDemand},
		{"eks.amazonaws.com/capacityType", "CAPACITY_BLOCK", world.Reserved},
		{"cloud.google.com/gke-spot", "true", world.Spot},
		{"cloud.google.com/gke-preemptible", "true", world.Spot},
		{"cloud.google.com/gke-provisioning", "standard", world.OnDemand},
		{"cloud.google.com/gke-provisioning", "spot", world.Spot},
		{"kubernetes.azure.com/scalesetpriority", "spot", world.Spot},
		{"node.kubernetes.io/lifecycle", "spot", world.Spot},
		{"node.kubernetes.io/lifecycle", "normal", world.OnDemand},
		{"cloud.google.com/gke-spot", "false", world.Unclassed},
		{"example.com/priority", "spot", world.Unclassed},
	} {
		if got := NodeOf(node("n", labelled(c.key, c.value)), Settings{}).class; got != c.want {
			t.Errorf("%s=%s: %s, want %s", c.key, c.value, got, c.want)
		}
	}
}

func FuzzNodeOf(f *testing.F) {
	f.Add("8", "192", resourceNVIDIA, "nvidia.com/gpu.replicas", "4")
	f.Add("-1", "1e30", "nvidia.com/mig-", "cloud.google.com/gke-max-shared-clients-per-gpu", "-9")
	f.Add("1500m", "", "nvidia.com/mig-.shared", "", "")
	f.Fuzz(func(t *testing.T, gpus, cpu, name, key, value string) {
		n := node("n", bare, labelled(key, value))
		n.Status.Allocatable["cpu"], _ = resource.ParseQuantity(cpu)
		n.Status.Allocatable[core.ResourceName(name)], _ = resource.ParseQuantity(gpus)
		kept := NodeOf(n, Settings{Resources: []Resource{{Name: "google.com/tpu", ProductLabel: key}}})
		if kept.cpu < 0 || kept.memory < 0 || kept.pods < 0 {
			t.Errorf("a node of %+v", kept)
		}
		for _, d := range kept.devices {
			if d.n <= 0 || d.n > most || d.shares < 1 || d.product.String() == "" {
				t.Errorf("%+v of %q %q", d, name, gpus)
			}
		}
	})
}
