package stub

import (
	"fmt"
	"maps"
	"net/netip"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// podMaker makes the pods: copies of one, with what differs between real ones of a Deployment. What does not is shared.
func (s Shape) podMaker() func(int) object {
	like := podTemplate()
	like.ManagedFields = []meta.ManagedFieldsEntry{
		written("kube-controller-manager", "", map[string]any{"metadata": map[string]any{"labels": like.Labels, "annotations": like.Annotations}, "spec": core.PodSpec{Containers: like.Spec.Containers}}),
		written("kubelet", "status", map[string]any{"status": core.PodStatus{Phase: like.Status.Phase, Conditions: like.Status.Conditions, StartTime: like.Status.StartTime}}),
	}
	return func(i int) object { return s.pod(like, i) }
}

// pod is the pod of a number.
func (s Shape) pod(like *core.Pod, i int) *core.Pod {
	p := *like
	app, namespace := "batch", "team-00"
	if service, ok := s.serviceOf(i); ok {
		app, namespace = ServiceName(service), Namespace(service)
	}
	hash := hex(s.Index*1000+i/25, 10)
	p.Namespace, p.Name, p.GenerateName = namespace, fmt.Sprintf("%s-%s-%05d", app, hash, i), app+"-"+hash+"-"
	p.UID, p.ResourceVersion = uid('c', s.Index, i), versionText(firstVersion)
	p.Labels = maps.Clone(like.Labels)
	p.Labels["app.kubernetes.io/instance"], p.Labels["app.kubernetes.io/name"], p.Labels["pod-template-hash"] = app, app, hash
	p.OwnerReferences = []meta.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-" + hash, UID: uid('d', s.Index, i/25), Controller: new(true), BlockOwnerDeletion: new(true)}}
	p.Spec.NodeName = s.nodeName(i % s.Nodes)
	p.Status.HostIP = s.nodeAddress(i % s.Nodes)
	p.Status.HostIPs = []core.HostIP{{IP: p.Status.HostIP}}
	setAddress(&p, s.address(i))
	p.Status.ContainerStatuses = append([]core.ContainerStatus(nil), like.Status.ContainerStatuses...)
	for n := range p.Status.ContainerStatuses {
		p.Status.ContainerStatuses[n].ContainerID = "containerd://" + hex(i*4+n, 64)
	}
	return &p
}

func setAddress(p *core.Pod, a netip.Addr) {
	p.Status.PodIP, p.Status.PodIPs = a.String(), []core.PodIP{{IP: a.String()}}
}

// movedPod is a pod with another address.
func movedPod(o object, to netip.Addr, version int64) object {
	p := *o.(*core.Pod)
	p.ResourceVersion = versionText(version)
	setAddress(&p, to)
	return &p
}

// podTemplate is a model server as Deployments make them: an init container, the server, and a sidecar.
func podTemplate() *core.Pod {
	p := &core.Pod{
		TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta.ObjectMeta{
			CreationTimestamp: born,
			Labels: map[string]string{"app.kubernetes.io/component": "model-server", "app.kubernetes.io/part-of": "inference", "app.kubernetes.io/managed-by": "Helm",
				"app.kubernetes.io/version": "0.14.1", "helm.sh/chart": "vllm-stack-2.8.0", "topology.kubernetes.io/zone": "eu-central-1a"},
			Annotations: map[string]string{
				"prometheus.io/scrape": "true", "prometheus.io/port": "8000", "prometheus.io/path": "/metrics",
				"kubectl.kubernetes.io/default-container": "vllm", "kubectl.kubernetes.io/restartedAt": "2026-12-01T07:59:58Z",
				"checksum/config": hex(1, 64), "checksum/secret": hex(2, 64), "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
				"k8s.v1.cni.cncf.io/network-status": `[{"name":"cilium","interface":"eth0","ips":["10.0.0.1"],"mac":"0a:58:0a:00:00:01","default":true,"dns":{}}]`,
			},
		},
		Spec: core.PodSpec{
			Volumes: volumes(), RestartPolicy: core.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(120)), DNSPolicy: core.DNSClusterFirst,
			InitContainers: []core.Container{container("fetch-model", "registry.example.com/inference/fetch:1.9.2", 1, nil)},
			Containers: []core.Container{
				container("vllm", "registry.example.com/inference/vllm-openai:v0.14.1", 10, core.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}),
				container("otel-agent", "registry.example.com/observability/otel-agent:0.140.0", 2, nil),
			},
			NodeSelector: map[string]string{"nvidia.com/gpu.product": gpuProduct, "node.example.com/pool": "inference"}, ServiceAccountName: "model-server",
			SecurityContext: &core.PodSecurityContext{RunAsUser: new(int64(1000)), FSGroup: new(int64(1000)), RunAsNonRoot: new(true)}, SchedulerName: "default-scheduler",
			Affinity: spread(), Priority: new(int32(1000)), PriorityClassName: "inference", EnableServiceLinks: new(false), PreemptionPolicy: new(core.PreemptLowerPriority),
			Tolerations: []core.Toleration{
				{Key: "nvidia.com/gpu", Operator: core.TolerationOpExists, Effect: core.TaintEffectNoSchedule},
				{Key: core.TaintNodeNotReady, Operator: core.TolerationOpExists, Effect: core.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
				{Key: core.TaintNodeUnreachable, Operator: core.TolerationOpExists, Effect: core.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			},
		},
		Status: core.PodStatus{Phase: core.PodRunning, StartTime: &born, QOSClass: core.PodQOSBurstable},
	}
	for _, t := range []core.PodConditionType{"PodReadyToStartContainers", core.PodInitialized, core.PodReady, core.ContainersReady, core.PodScheduled} {
		p.Status.Conditions = append(p.Status.Conditions, core.PodCondition{Type: t, Status: core.ConditionTrue, LastTransitionTime: born})
	}
	for i := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, running(&p.Spec.Containers[i]))
	}
	done := running(&p.Spec.InitContainers[0])
	done.State = core.ContainerState{Terminated: &core.ContainerStateTerminated{Reason: "Completed", StartedAt: born, FinishedAt: born, ContainerID: done.ContainerID}}
	p.Status.InitContainerStatuses = []core.ContainerStatus{done}
	return p
}

func container(name, image string, variables int, limits core.ResourceList) core.Container {
	c := core.Container{
		Name: name, Image: image, ImagePullPolicy: core.PullIfNotPresent, TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: core.TerminationMessageReadFile,
		Args:      []string{"--model=/models/llama-3.1-70b-instruct", "--port=8000", "--max-num-seqs=256", "--gpu-memory-utilization=0.92", "--enable-prefix-caching"},
		Ports:     []core.ContainerPort{{Name: "http", ContainerPort: 8000, Protocol: core.ProtocolTCP}},
		Resources: core.ResourceRequirements{Requests: core.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("32Gi")}, Limits: core.ResourceList{"memory": resource.MustParse("64Gi")}},
		VolumeMounts: []core.VolumeMount{
			{Name: "models", MountPath: "/models", ReadOnly: true}, {Name: "shm", MountPath: "/dev/shm"}, {Name: "config", MountPath: "/etc/vllm", ReadOnly: true},
			{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
		SecurityContext: &core.SecurityContext{AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}}},
	}
	if limits == nil {
		c.Args, c.VolumeMounts = c.Args[:1], c.VolumeMounts[2:]
	}
	for of, quantity := range limits {
		c.Resources.Requests[of], c.Resources.Limits[of] = quantity, quantity
		c.ReadinessProbe, c.LivenessProbe = probe("/health"), probe("/ping")
	}
	for i := range variables {
		c.Env = append(c.Env, core.EnvVar{Name: fmt.Sprintf("INFERENCE_SETTING_%02d", i), Value: "value-of-setting-" + hex(i, 16)})
	}
	c.Env = append(c.Env, core.EnvVar{Name: "POD_NAME", ValueFrom: &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
		core.EnvVar{Name: "HF_TOKEN", ValueFrom: &core.EnvVarSource{SecretKeyRef: &core.SecretKeySelector{LocalObjectReference: core.LocalObjectReference{Name: "hugging-face"}, Key: "token"}}})
	return c
}

func probe(path string) *core.Probe {
	return &core.Probe{ProbeHandler: core.ProbeHandler{HTTPGet: &core.HTTPGetAction{Path: path, Port: intstr.FromString("http"), Scheme: core.URISchemeHTTP}}, TimeoutSeconds: 2, PeriodSeconds: 5, SuccessThreshold: 1, FailureThreshold: 3}
}

func volumes() []core.Volume {
	token := core.VolumeProjection{ServiceAccountToken: &core.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}}
	roots := core.VolumeProjection{ConfigMap: &core.ConfigMapProjection{LocalObjectReference: core.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []core.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}}
	memory := resource.MustParse("16Gi")
	return []core.Volume{
		{Name: "models", VolumeSource: core.VolumeSource{PersistentVolumeClaim: &core.PersistentVolumeClaimVolumeSource{ClaimName: "models", ReadOnly: true}}},
		{Name: "shm", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{Medium: core.StorageMediumMemory, SizeLimit: &memory}}},
		{Name: "config", VolumeSource: core.VolumeSource{ConfigMap: &core.ConfigMapVolumeSource{LocalObjectReference: core.LocalObjectReference{Name: "vllm"}, DefaultMode: new(int32(420))}}},
		{Name: "kube-api-access", VolumeSource: core.VolumeSource{Projected: &core.ProjectedVolumeSource{Sources: []core.VolumeProjection{token, roots}, DefaultMode: new(int32(420))}}},
	}
}

func spread() *core.Affinity {
	apart := core.PodAffinityTerm{TopologyKey: core.LabelHostname, LabelSelector: &meta.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/component": "model-server"}}}
	return &core.Affinity{PodAntiAffinity: &core.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []core.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: apart}}}}
}

func running(c *core.Container) core.ContainerStatus {
	return core.ContainerStatus{
		Name: c.Name, Ready: true, Started: new(true), Image: c.Image, ImageID: c.Image + "@sha256:" + hex(len(c.Name), 64), ContainerID: "containerd://" + hex(7, 64),
		State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: born}}, AllocatedResources: c.Resources.Requests,
	}
}
