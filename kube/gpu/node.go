package gpu

import (
	"slices"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/meridian-mesh/meridian/world"
)

// Node is what is kept of a node.
type Node struct {
	devices []nodeDevice
	labels  labelSet
	taints  []core.Taint // that keep pods away
	class   world.CapacityClass
	cpu     int64 // allocatable, in thousandths
	memory  int64 // allocatable, in bytes
	pods    int64
	up      bool // ready, and not cordoned
	barred  bool // doesn't count for totals
}

// nodeDevice are the devices of a node by one extended resource.
type nodeDevice struct {
	resource, product text
	shares            int64
	n                 int64 // allocatable
}

const (
	podsByDefault = 110  // of a node that doesn't say how many it takes, as kubelet has it
	podsAtMost    = 1024 // that are looked for on a node, whatever it says
)

// NodeOf keeps what counts of a node. All nodes are of interest: which have devices of a DRA driver, their slices say.
func NodeOf(n *core.Node, s Settings) Node {
	has := labelsOf(n.Labels)
	kept := Node{
		labels: has, class: classOf(has), cpu: milliOf(n.Status.Allocatable.Cpu()), memory: valueOf(*n.Status.Allocatable.Memory()),
		pods: podsByDefault, up: !n.Spec.Unschedulable && ready(n),
	}
	if pods, ok := n.Status.Allocatable[core.ResourcePods]; ok {
		kept.pods = min(valueOf(pods), podsAtMost)
	}
	for _, a := range s.devicesIn(n.Status.Allocatable) {
		name := a.of.String()
		kept.devices = append(kept.devices, nodeDevice{a.of, textOf(s.productOf(name, has)), sharesOf(name, has), a.n})
	}
	for _, t := range n.Spec.Taints {
		if t.Effect == core.TaintEffectNoSchedule || t.Effect == core.TaintEffectNoExecute {
			kept.taints = append(kept.taints, core.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	kept.barred = !kept.up || slices.ContainsFunc(kept.taints, s.bars)
	return kept
}

func ready(n *core.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c core.NodeCondition) bool {
		return c.Type == core.NodeReady && c.Status == core.ConditionTrue
	})
}

// bars tells whether a taint keeps away even those who want accelerators: not if its key names an accelerator, or spot capacity.
func (s Settings) bars(t core.Taint) bool {
	switch {
	case s.counts(t.Key), strings.HasPrefix(t.Key, resourceNVIDIA), strings.HasPrefix(t.Key, resourceAMD):
		return false
	case slices.Contains(labelsGKE, t.Key), t.Key == "sku" && t.Value == "gpu": // what AKS tells its users to set
		return false
	}
	for _, l := range classLabels {
		if l.key == t.Key {
			return false
		}
	}
	return !slices.Contains(s.Tolerate, t.Key)
}

// SlimNode drops from a node what NodeOf has no use of.
func SlimNode(n *core.Node) {
	n.ManagedFields, n.Annotations, n.OwnerReferences = nil, nil, nil
	n.Spec = core.NodeSpec{Unschedulable: n.Spec.Unschedulable, Taints: n.Spec.Taints}
	n.Status = core.NodeStatus{Allocatable: n.Status.Allocatable, Conditions: n.Status.Conditions}
}
