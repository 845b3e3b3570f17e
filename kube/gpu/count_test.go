package gpu

import (
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meridian-mesh/meridian/world"
)

// row is the count of H100s of no known class: total, used, pending, free, barred, barred and used.
func row(n ...int64) []world.Accelerator {
	return []world.Accelerator{{
		Product: h100, Class: world.Unclassed, Resource: resourceNVIDIA, Shares: 1,
		Total: n[0], Used: n[1], Pending: n[2], Free: n[3], Barred: n[4], BarredUsed: n[5],
	}}
}

func TestNodesThatCount(t *testing.T) {
	busy := []*core.Pod{pod("a", "n1", "3"), pod("b", "n1", "1")}
	for name, c := range map[string]struct {
		nodes []*core.Node
		want  []world.Accelerator
	}{
		"one that is ready":            {[]*core.Node{node("n1")}, row(8, 4, 0, 4, 0, 0)},
		"several add up":               {[]*core.Node{node("n1"), node("n2")}, row(16, 4, 0, 12, 0, 0)},
		"one that is cordoned":         {[]*core.Node{node("n1", cordoned), node("n2")}, row(8, 0, 0, 8, 8, 4)},
		"one that is not ready":        {[]*core.Node{node("n1", notReady)}, row(0, 0, 0, 0, 8, 4)},
		"one that says nothing yet":    {[]*core.Node{node("n1", func(n *core.Node) { n.Status.Conditions = nil })}, row(0, 0, 0, 0, 8, 4)},
		"a taint of one's own":         {[]*core.Node{node("n1", tainted("team", "search", core.TaintEffectNoSchedule))}, row(0, 0, 0, 0, 8, 4)},
		"about to be taken away":       {[]*core.Node{node("n1", tainted("karpenter.sh/disrupted", "", core.TaintEffectNoSchedule))}, row(0, 0, 0, 0, 8, 4)},
		"a taint that only advises":    {[]*core.Node{node("n1", tainted("team", "search", core.TaintEffectPreferNoSchedule))}, row(8, 4, 0, 4, 0, 0)},
		"a taint that settings permit": {[]*core.Node{node("n1", tainted("inference", "", core.TaintEffectNoExecute))}, row(8, 4, 0, 4, 0, 0)},
		"taints of GPUs":               {[]*core.Node{node("n1", tainted("nvidia.com/gpu", "present", core.TaintEffectNoSchedule))}, row(8, 4, 0, 4, 0, 0)},
		"taints of GPUs on AKS":        {[]*core.Node{node("n1", tainted("sku", "gpu", core.TaintEffectNoSchedule))}, row(8, 4, 0, 4, 0, 0)},
		"taints of spot":               {[]*core.Node{node("n1", tainted("kubernetes.azure.com/scalesetpriority", "spot", core.TaintEffectNoSchedule))}, row(8, 4, 0, 4, 0, 0)},
		"one whose devices failed":     {[]*core.Node{node("n1", has(resourceNVIDIA, "3"))}, row(3, 3, 0, 0, 0, 0)},
		"one without GPUs":             {[]*core.Node{node("n1", bare)}, nil},
		"none":                         {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, c.want, objects{settings: Settings{Tolerate: []string{"inference"}}, nodes: c.nodes, pods: busy}.inventory().Count().Rows)
		})
	}
}

func TestClassesAndProductsAreApart(t *testing.T) {
	got := objects{nodes: []*core.Node{
		node("n1", labelled("karpenter.sh/capacity-type", "spot")), node("n2", labelled("karpenter.sh/capacity-type", "on-demand")),
		node("n3", labelled("nvidia.com/gpu.product", "NVIDIA-L4"), has(resourceNVIDIA, "1")),
		node("n4", has("nvidia.com/mig-1g.10gb", "7"), has(resourceNVIDIA, "7")),
	}}.inventory().Count().Rows
	equal(t, []world.Accelerator{
		{Product: h100, Class: world.OnDemand, Resource: resourceNVIDIA, Shares: 1, Total: 8, Free: 8},
		{Product: h100, Class: world.Spot, Resource: resourceNVIDIA, Shares: 1, Total: 8, Free: 8},
		{Product: h100, Class: world.Unclassed, Resource: resourceNVIDIA, Shares: 1, Total: 7, Free: 7},
		{Product: h100 + "-MIG-1g.10gb", Class: world.Unclassed, Resource: "nvidia.com/mig-1g.10gb", Shares: 1, Total: 7, Free: 7},
		{Product: "NVIDIA-L4", Class: world.Unclassed, Resource: resourceNVIDIA, Shares: 1, Total: 1, Free: 1},
	}, got)
}

func TestPodsThatCount(t *testing.T) {
	always := core.ContainerRestartPolicyAlways
	phase := func(phase core.PodPhase) func(*core.Pod) { return func(p *core.Pod) { p.Status.Phase = phase } }
	inits := func(all ...core.Container) func(*core.Pod) {
		return func(p *core.Pod) { p.Spec.InitContainers = all }
	}
	sidecar := container(resourceNVIDIA, "1")
	sidecar.RestartPolicy = &always
	for name, c := range map[string]struct {
		pod  *core.Pod
		want []world.Accelerator
	}{
		"one that runs":                       {pod("a", "n1", "2"), row(8, 2, 0, 6, 0, 0)},
		"one that has ended":                  {pod("a", "n1", "2", phase(core.PodSucceeded)), row(8, 0, 0, 8, 0, 0)},
		"one that has failed":                 {pod("a", "n1", "2", phase(core.PodFailed)), row(8, 0, 0, 8, 0, 0)},
		"one that ends still holds them":      {pod("a", "n1", "2", terminating), row(8, 2, 0, 6, 0, 0)},
		"one of two containers":               {pod("a", "n1", "2", func(p *core.Pod) { p.Spec.Containers = append(p.Spec.Containers, container(resourceNVIDIA, "1")) }), row(8, 3, 0, 5, 0, 0)},
		"an init container gives back":        {pod("a", "n1", "2", inits(container(resourceNVIDIA, "1"))), row(8, 2, 0, 6, 0, 0)},
		"the largest init container counts":   {pod("a", "n1", "2", inits(container(resourceNVIDIA, "4"), container(resourceNVIDIA, "3"))), row(8, 4, 0, 4, 0, 0)},
		"a sidecar stays":                     {pod("a", "n1", "2", inits(sidecar)), row(8, 3, 0, 5, 0, 0)},
		"a sidecar stays beside what follows": {pod("a", "n1", "2", inits(sidecar, container(resourceNVIDIA, "4"))), row(8, 5, 0, 3, 0, 0)},
		"one that waits":                      {pod("a", "", "2"), row(8, 0, 2, 6, 0, 0)},
		"one that waits and ends":             {pod("a", "", "2", terminating), row(8, 0, 0, 8, 0, 0)},
		"one that is gated": {pod("a", "", "2", func(p *core.Pod) {
			p.Spec.SchedulingGates = []core.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
		}), row(8, 0, 0, 8, 0, 0)},
		"one that was nominated":             {pod("a", "", "2", func(p *core.Pod) { p.Status.NominatedNodeName = "n1" }), row(8, 2, 0, 6, 0, 0)},
		"one that may not run here":          {pod("a", "", "2", func(p *core.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "b"} }), row(8, 0, 0, 8, 0, 0)},
		"one that is too large":              {pod("a", "", "9"), row(8, 0, 0, 8, 0, 0)},
		"one on a node that is not known":    {pod("a", "n9", "2"), row(8, 0, 0, 8, 0, 0)},
		"one that asks for something else":   {pod("a", "n1", "2", func(p *core.Pod) { p.Spec.Containers = []core.Container{container("cpu", "2")} }), row(8, 0, 0, 8, 0, 0)},
		"one that holds more than there are": {pod("a", "n1", "16"), row(8, 8, 0, 0, 0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, c.want, objects{nodes: []*core.Node{node("n1")}, pods: []*core.Pod{c.pod}}.inventory().Count().Rows)
		})
	}
}

// What waits takes each free device once, the largest first; what is left over is told.
func TestWhatWaitsIsSettled(t *testing.T) {
	got := objects{
		nodes: []*core.Node{node("n1"), node("n2")},
		pods:  []*core.Pod{pod("a", "n1", "2"), pod("b", "", "1"), pod("c", "", "8"), pod("d", "", "8"), pod("e", "", "1"), pod("f", "", "8")},
	}.inventory().Count()
	equal(t, world.Accelerators{Rows: row(16, 2, 10, 4, 0, 0), Waiting: []world.AcceleratorDemand{{Resource: resourceNVIDIA, Pods: 2, Devices: 16}}}, got)
}

func TestANodeThatIsHeardOfAfterItsPods(t *testing.T) {
	i := objects{pods: []*core.Pod{pod("a", "n1", "2")}}.inventory()
	equal(t, 0, len(i.Count().Rows))
	i.PutNode("n1", NodeOf(node("n1"), Settings{}))
	equal(t, row(8, 2, 0, 6, 0, 0), i.Count().Rows)
	if i.RemoveNode("n1"); len(i.Count().Rows) != 0 {
		t.Errorf("after the node: %+v", i.Count())
	}
	i.PutNode("n1", NodeOf(node("n1"), Settings{}))
	equal(t, row(8, 2, 0, 6, 0, 0), i.Count().Rows)
	i.RemovePod(types.NamespacedName{Namespace: "models", Name: "a"})
	equal(t, row(8, 0, 0, 8, 0, 0), i.Count().Rows)
}

func TestWhatChangesNothingSaysSo(t *testing.T) {
	o := objects{nodes: []*core.Node{node("n1")}, pods: []*core.Pod{pod("a", "n1", "2"), pod("b", "", "2")}}
	i := o.inventory()
	heartbeat := node("n1")
	heartbeat.Status.Conditions[0].LastHeartbeatTime = meta.Unix(1, 0)
	if i.PutNode("n1", NodeOf(heartbeat, Settings{})) {
		t.Error("a heartbeat changed the node")
	}
	for _, p := range o.pods {
		kept, _ := PodOf(p, Settings{})
		if i.PutPod(types.NamespacedName{Namespace: "models", Name: p.Name}, kept) {
			t.Errorf("pod %s changed", p.Name)
		}
	}
	if i.RemovePod(types.NamespacedName{Namespace: "models", Name: "z"}) || i.RemoveNode("n9") || i.RemoveSlice("s") || i.RemoveQueue("q") {
		t.Error("what was not there was removed")
	}
	if !i.PutNode("n1", NodeOf(node("n1", cordoned), Settings{})) {
		t.Error("a cordon changed nothing")
	}
}

func TestHolds(t *testing.T) {
	i := objects{
		nodes: []*core.Node{node("n1"), node("n2", labelled("karpenter.sh/capacity-type", "spot"))},
		pods:  []*core.Pod{pod("a", "n1", "2"), pod("b", "n2", "4"), pod("c", "n1", "1"), pod("d", "", "1"), pod("e", "n9", "1")},
	}.inventory()
	name := func(s string) types.NamespacedName { return types.NamespacedName{Namespace: "models", Name: s} }
	equal(t, []world.Holding{
		{Product: h100, Class: world.Spot, Resource: resourceNVIDIA, Shares: 1, Devices: 4},
		{Product: h100, Class: world.Unclassed, Resource: resourceNVIDIA, Shares: 1, Devices: 2},
		{Product: resourceNVIDIA, Class: world.Unclassed, Resource: resourceNVIDIA, Shares: 1, Devices: 1},
	}, i.Holds(name("a"), name("b"), name("d"), name("e"), name("z"), name("a")))
}
