package gpu

import (
	"cmp"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresource "k8s.io/component-helpers/resource"
)

// labelQueue is the label by which pods ask for a LocalQueue of their namespace.
const labelQueue = "kueue.x-k8s.io/queue-name"

// Pod is what is kept of a pod that has to do with accelerators.
type Pod struct {
	node   text // where it is bound or nominated; none while it waits
	asks   []amount
	cpu    int64 // in thousandths
	memory int64 // in bytes
	claims []string
	shape  *Shape // one for all pods of the shape
	waits  bool   // for a node, by what it asks of one
	queue  text   // of Kueue, where it came through one
}

// PodOf keeps what counts of a pod; ok is false where it holds no accelerators and waits for none: whoever kept it before removes it.
// A pod that is terminating holds its devices until it is gone, and one that was nominated for a node after a preemption
// is as good as there.
func PodOf(p *core.Pod, s Settings) (kept Pod, ok bool) {
	if p.Status.Phase == core.PodSucceeded || p.Status.Phase == core.PodFailed {
		return Pod{}, false
	}
	requests := podresource.PodRequests(p, podresource.PodResourcesOptions{})
	kept = Pod{
		node: textOf(cmp.Or(p.Spec.NodeName, p.Status.NominatedNodeName)), asks: s.devicesIn(requests), claims: claimsOf(p),
		cpu: milliOf(requests.Cpu()), memory: valueOf(*requests.Memory()),
	}
	if kept.node == (text{}) && (p.DeletionTimestamp != nil || len(p.Spec.SchedulingGates) > 0) {
		return Pod{}, false
	}
	if len(kept.asks)+len(kept.claims) == 0 {
		return Pod{}, false
	}
	shape := ShapeOf(&p.Spec, s)
	kept.shape, kept.waits = &shape, kept.node == (text{}) && len(kept.asks) > 0
	kept.queue = textOf(p.Labels[labelQueue])
	return kept, true
}

// claimsOf are the names of a pod's claims, its own and those made for it.
func claimsOf(p *core.Pod) (names []string) {
	for _, c := range p.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			names = append(names, *c.ResourceClaimName)
		}
	}
	for _, c := range p.Status.ResourceClaimStatuses {
		if c.ResourceClaimName != nil {
			names = append(names, *c.ResourceClaimName)
		}
	}
	if c := p.Status.ExtendedResourceClaimStatus; c != nil {
		names = append(names, c.ResourceClaimName)
	}
	return names
}

// SlimPod drops from a pod what PodOf has no use of. What its containers ask for together, one asks for then.
func SlimPod(p *core.Pod) {
	requests := podresource.PodRequests(p, podresource.PodResourcesOptions{})
	queue, queued := p.Labels[labelQueue]
	object, spec, status := p.ObjectMeta, p.Spec, p.Status
	p.ObjectMeta = meta.ObjectMeta{Namespace: object.Namespace, Name: object.Name, ResourceVersion: object.ResourceVersion, DeletionTimestamp: object.DeletionTimestamp}
	if queued {
		p.Labels = map[string]string{labelQueue: queue}
	}
	p.Spec = core.PodSpec{
		NodeName: spec.NodeName, NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations, SchedulingGates: spec.SchedulingGates,
		ResourceClaims: spec.ResourceClaims, Containers: []core.Container{{Resources: core.ResourceRequirements{Requests: requests}}},
	}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		p.Spec.Affinity = &core.Affinity{NodeAffinity: spec.Affinity.NodeAffinity}
	}
	p.Status = core.PodStatus{
		Phase: status.Phase, NominatedNodeName: status.NominatedNodeName,
		ResourceClaimStatuses: status.ResourceClaimStatuses, ExtendedResourceClaimStatus: status.ExtendedResourceClaimStatus,
	}
}
