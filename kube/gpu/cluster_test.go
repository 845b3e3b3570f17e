package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	dra "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const h100 = "NVIDIA-H100-80GB-HBM3"

// node is a ready node of 8 H100s, changed by what is given.
func node(name string, change ...func(*core.Node)) *core.Node {
	n := &core.Node{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{"nvidia.com/gpu.product": h100, core.LabelHostname: name}}}
	n.Status.Conditions = []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue}}
	n.Status.Allocatable = core.ResourceList{
		"cpu": resource.MustParse("192"), "memory": resource.MustParse("2Ti"), "pods": resource.MustParse("110"), resourceNVIDIA: resource.MustParse("8"),
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func labelled(key, value string) func(*core.Node) {
	return func(n *core.Node) { n.Labels[key] = value }
}

func unlabelled(n *core.Node) { n.Labels = map[string]string{} }

// has gives the node so many of a resource in place of its GPUs, or beside them if it is something else.
func has(name core.ResourceName, n string) func(*core.Node) {
	return func(node *core.Node) { node.Status.Allocatable[name] = resource.MustParse(n) }
}

// bare takes the extended resource away, as on nodes with a DRA driver.
func bare(n *core.Node) { delete(n.Status.Allocatable, resourceNVIDIA) }

func cordoned(n *core.Node) { n.Spec.Unschedulable = true }

func notReady(n *core.Node) { n.Status.Conditions[0].Status = core.ConditionUnknown }

func tainted(key, value string, effect core.TaintEffect) func(*core.Node) {
	return func(n *core.Node) {
		n.Spec.Taints = append(n.Spec.Taints, core.Taint{Key: key, Value: value, Effect: effect})
	}
}

// pod is a running pod that asks for so many GPUs, on a node or on none.
func pod(name, on, gpus string, change ...func(*core.Pod)) *core.Pod {
	p := &core.Pod{ObjectMeta: meta.ObjectMeta{Namespace: "models", Name: name}}
	p.Spec.NodeName, p.Status.Phase = on, core.PodRunning
	if on == "" {
		p.Status.Phase = core.PodPending
	}
	p.Spec.Containers = []core.Container{container(resourceNVIDIA, gpus)}
	for _, c := range change {
		c(p)
	}
	return p
}

func container(name core.ResourceName, n string) core.Container {
	list := core.ResourceList{name: resource.MustParse(n)}
	return core.Container{Resources: core.ResourceRequirements{Requests: list, Limits: list}}
}

func terminating(p *core.Pod) { p.DeletionTimestamp = &meta.Time{} }

// objects are what a cluster has. Settings are the zero value's unless it says otherwise.
type objects struct {
	settings Settings
	nodes    []*core.Node
	pods     []*core.Pod
	slices   []*dra.ResourceSlice
	claims   []*dra.ResourceClaim
}

func (o objects) inventory() *Inventory {
	i := &Inventory{}
	for _, n := range o.nodes {
		i.PutNode(n.Name, NodeOf(slimmed(n, SlimNode), o.settings))
	}
	for _, p := range o.pods {
		if kept, ok := PodOf(slimmed(p, SlimPod), o.settings); ok {
			i.PutPod(types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, kept)
		}
	}
	for _, s := range o.slices {
		if kept, ok := SliceOf(s, o.settings); ok {
			i.PutSlice(s.Name, kept)
		}
	}
	for _, c := range o.claims {
		if kept, ok := ClaimOf(c, o.settings); ok {
			i.PutClaim(types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, kept)
		}
	}
	return i
}

// slimmed is a copy of an object without what is not used: all that is counted is counted from such.
func slimmed[T interface{ DeepCopy() T }](o T, slim func(T)) T {
	c := o.DeepCopy()
	slim(c)
	return c
}

func equal(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
