package stub

import (
	"fmt"
	"maps"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gpuProduct is what GPU feature discovery says of all nodes.
const gpuProduct = "NVIDIA-H100-80GB-HBM3"

func (s Shape) nodeName(i int) string {
	return fmt.Sprintf("ip-172-%d-%d-%d.eu-central-1.compute.internal", s.Index, i>>8, i&255)
}

func (s Shape) nodeAddress(i int) string { return fmt.Sprintf("172.%d.%d.%d", s.Index, i>>8, i&255) }

// nodeMaker makes the nodes, as a cloud has them, with what GPU feature discovery says and the images that they hold.
func (s Shape) nodeMaker() func(int) object {
	like := nodeTemplate(s.gpusPerNode())
	like.ManagedFields = []meta.ManagedFieldsEntry{
		written("kubelet", "", map[string]any{"metadata": map[string]any{"labels": like.Labels, "annotations": like.Annotations}}),
		written("gpu-feature-discovery", "", map[string]any{"metadata": map[string]any{"labels": like.Labels}}),
		written("kubelet", "status", map[string]any{"status": map[string]any{"allocatable": like.Status.Allocatable, "capacity": like.Status.Capacity, "conditions": like.Status.Conditions}}),
	}
	return func(i int) object {
		n := *like
		n.Name, n.UID, n.ResourceVersion = s.nodeName(i), uid('e', s.Index, i), versionText(firstVersion)
		n.Labels = maps.Clone(like.Labels)
		n.Labels[core.LabelHostname], n.Labels[core.LabelTopologyZone] = n.Name, fmt.Sprintf("eu-central-1%c", 'a'+i%3)
		n.Spec.ProviderID = fmt.Sprintf("aws:///eu-central-1a/i-%s", hex(i, 17))
		n.Status.Addresses = []core.NodeAddress{{Type: core.NodeInternalIP, Address: s.nodeAddress(i)}, {Type: core.NodeHostName, Address: n.Name}}
		n.Status.NodeInfo.SystemUUID, n.Status.NodeInfo.BootID = hex(i, 32), hex(i+1, 32)
		return &n
	}
}

func nodeTemplate(gpus int64) *core.Node {
	n := &core.Node{
		TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: meta.ObjectMeta{CreationTimestamp: born, Labels: nodeLabels(gpus), Annotations: map[string]string{
			"node.alpha.kubernetes.io/ttl": "15", "volumes.kubernetes.io/controller-managed-attach-detach": "true",
			"csi.volume.kubernetes.io/nodeid":       `{"ebs.csi.aws.com":"i-0123456789abcdef0","fsx.csi.aws.com":"i-0123456789abcdef0"}`,
			"nvidia.com/gpu-driver-upgrade-enabled": "true", "nfd.node.kubernetes.io/feature-labels": "cpu-cpuid.ADX,cpu-cpuid.AVX512F,kernel-version.full,pci-10de.present,system-os_release.ID",
		}},
		Spec: core.NodeSpec{Taints: []core.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: core.TaintEffectNoSchedule}}},
		Status: core.NodeStatus{
			DaemonEndpoints: core.NodeDaemonEndpoints{KubeletEndpoint: core.DaemonEndpoint{Port: 10250}},
			NodeInfo: core.NodeSystemInfo{MachineID: hex(5, 32), KernelVersion: "6.12.55-74.119.amzn2023.x86_64", OSImage: "Amazon Linux 2023.9", ContainerRuntimeVersion: "containerd://2.1.5",
				KubeletVersion: "v1.37.2", OperatingSystem: "linux", Architecture: "amd64"},
		},
	}
	n.Status.Capacity = core.ResourceList{"cpu": resource.MustParse("192"), "memory": resource.MustParse("2097152Mi"), "pods": resource.MustParse("100"),
		"ephemeral-storage": resource.MustParse("500Gi"), "hugepages-2Mi": resource.MustParse("0"), "nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
	n.Status.Allocatable = n.Status.Capacity
	for _, t := range []core.NodeConditionType{core.NodeMemoryPressure, core.NodeDiskPressure, core.NodePIDPressure, core.NodeNetworkUnavailable} {
		n.Status.Conditions = append(n.Status.Conditions, core.NodeCondition{Type: t, Status: core.ConditionFalse, LastHeartbeatTime: born, LastTransitionTime: born, Reason: "KubeletHasNo" + string(t), Message: "kubelet has no " + string(t)})
	}
	n.Status.Conditions = append(n.Status.Conditions, core.NodeCondition{Type: core.NodeReady, Status: core.ConditionTrue, LastHeartbeatTime: born, LastTransitionTime: born, Reason: "KubeletReady", Message: "kubelet is posting ready status"})
	for i := range 30 {
		image := fmt.Sprintf("registry.example.com/inference/image-%02d", i)
		n.Status.Images = append(n.Status.Images, core.ContainerImage{Names: []string{image + "@sha256:" + hex(i, 64), image + ":v1.2.3"}, SizeBytes: int64(i+1) * 300_000_000})
	}
	return n
}

func nodeLabels(gpus int64) map[string]string {
	labels := map[string]string{
		"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", core.LabelArchStable: "amd64", core.LabelOSStable: "linux",
		core.LabelInstanceTypeStable: "p5.48xlarge", core.LabelTopologyRegion: "eu-central-1", "node.example.com/pool": "inference",
		"eks.amazonaws.com/capacityType": "ON_DEMAND", "eks.amazonaws.com/nodegroup": "h100", "eks.amazonaws.com/nodegroup-image": "ami-0123456789abcdef0",
		"nvidia.com/gpu.product": gpuProduct, "nvidia.com/gpu.count": fmt.Sprint(gpus), "nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.present": "true", "nvidia.com/gpu.family": "hopper",
		"nvidia.com/gpu.machine": "p5.48xlarge", "nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.compute.major": "9", "nvidia.com/gpu.compute.minor": "0", "nvidia.com/mig.capable": "true",
		"nvidia.com/mig.strategy": "single", "nvidia.com/cuda.driver.major": "580", "nvidia.com/cuda.runtime.major": "13", "nvidia.com/gpu.deploy.driver": "true", "nvidia.com/gpu.deploy.device-plugin": "true",
	}
	for _, feature := range []string{"ADX", "AESNI", "AMXBF16", "AMXINT8", "AMXTILE", "AVX", "AVX2", "AVX512BF16", "AVX512F", "AVX512VNNI", "FMA3", "SHA", "VMX", "WAITPKG"} {
		labels["feature.node.kubernetes.io/cpu-cpuid."+feature] = "true"
	}
	return labels
}
