package kube

import (
	"fmt"
	"net/netip"
	"slices"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meridian-mesh/meridian/world"
)

// inferencePools are the InferencePools of the Gateway API Inference Extension.
var inferencePools = schema.GroupVersionResource{Group: "inference.networking.k8s.io", Version: "v1", Resource: "inferencepools"}

// inferencePool is what is kept of an InferencePool.
type inferencePool struct {
	selector string // of pods, as labels.Selector writes it
	ports    []uint16
}

// inferencePoolOf reads an InferencePool. One without selector or ports selects nothing, as the API requires both.
func inferencePoolOf(u *unstructured.Unstructured) (inferencePool, error) {
	match, _, err := unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
	if err != nil {
		return inferencePool{}, fmt.Errorf("InferencePool %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	ports, _, err := unstructured.NestedSlice(u.Object, "spec", "targetPorts")
	if err != nil {
		return inferencePool{}, fmt.Errorf("InferencePool %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	p := inferencePool{selector: labels.SelectorFromSet(match).String()}
	if len(match) == 0 {
		p.selector = labels.Nothing().String()
	}
	for _, port := range ports {
		fields, _ := port.(map[string]any)
		if number, ok := fields["number"].(int64); ok && number > 0 && number <= 65535 {
			p.ports = append(p.ports, uint16(number))
		}
	}
	return p, nil
}

// pod is what is kept of a pod that an InferencePool selects.
type pod struct {
	address   netip.Addr
	condition world.Condition
}

// podOf reads a pod; ok is false where it serves nothing: it has no address yet, or has ended.
func podOf(p *core.Pod) (kept pod, ok bool) {
	address, err := netip.ParseAddr(p.Status.PodIP)
	if err != nil || p.Status.Phase == core.PodSucceeded || p.Status.Phase == core.PodFailed {
		return pod{}, false
	}
	kept = pod{address.Unmap(), world.Unready}
	ready := slices.ContainsFunc(p.Status.Conditions, func(c core.PodCondition) bool {
		return c.Type == core.PodReady && c.Status == core.ConditionTrue
	})
	switch {
	case p.DeletionTimestamp != nil && ready:
		kept.condition = world.Terminating
	case p.DeletionTimestamp == nil && ready:
		kept.condition = world.Ready
	}
	return kept, true
}

// poolSet are the InferencePools of a cluster, and the pods of those that are wanted. Its owner locks it.
type poolSet struct {
	listed bool // all that there are have been taken in
	byName map[named]inferencePool
	pods   map[named]podSet
}

// podSet are the pods of one InferencePool.
type podSet struct {
	selector string // by which they were selected
	byName   map[named]pod
}

// endpoints are those of an InferencePool: each of its pods at each of its ports. ok is false while they are not known.
func (s *poolSet) endpoints(of object) (found []world.FoundEndpoint, ok bool) {
	name := named{of.namespace, of.name}
	p, exists := s.byName[name]
	if !s.listed || !exists {
		return nil, s.listed
	}
	pods, ok := s.pods[name]
	if !ok || pods.selector != p.selector {
		return nil, false
	}
	for _, pod := range pods.byName {
		for _, port := range p.ports {
			found = append(found, world.FoundEndpoint{Address: netip.AddrPortFrom(pod.address, port), Condition: pod.condition})
		}
	}
	return distinct(found), true
}
