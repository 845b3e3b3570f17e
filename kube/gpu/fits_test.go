package gpu

import (
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/meridian-mesh/meridian/world"
)

// replica is the spec of a replica of so many GPUs, changed by what is given.
func replica(gpus string, change ...func(*core.PodSpec)) *core.PodSpec {
	s := &core.PodSpec{Containers: []core.Container{container(resourceNVIDIA, gpus)}}
	for _, c := range change {
		c(s)
	}
	return s
}

func requesting(name core.ResourceName, n string) func(*core.PodSpec) {
	return func(s *core.PodSpec) { s.Containers[0].Resources.Requests[name] = resource.MustParse(n) }
}

func tolerating(key string) func(*core.PodSpec) {
	return func(s *core.PodSpec) {
		s.Tolerations = append(s.Tolerations, core.Toleration{Key: key, Operator: core.TolerationOpExists})
	}
}

// within gives a required node affinity: any of some terms.
func within(terms ...core.NodeSelectorTerm) func(*core.PodSpec) {
	return func(s *core.PodSpec) {
		s.Affinity = &core.Affinity{NodeAffinity: &core.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &core.NodeSelector{NodeSelectorTerms: terms}}}
	}
}

func expression(key string, op core.NodeSelectorOperator, values ...string) core.NodeSelectorTerm {
	return core.NodeSelectorTerm{MatchExpressions: []core.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
}

func field(key string, op core.NodeSelectorOperator, values ...string) core.NodeSelectorTerm {
	return core.NodeSelectorTerm{MatchFields: []core.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
}

// The cluster has 6 and 7 free of 8 GPUs on two nodes, and 8 on a tainted one.
func TestFits(t *testing.T) {
	cluster := objects{
		nodes: []*core.Node{
			node("n1", labelled("zone", "a"), labelled("generation", "9")), node("n2", labelled("zone", "b"), labelled("generation", "10")),
			node("n3", labelled("zone", "c"), tainted("team", "search", core.TaintEffectNoSchedule)), node("n4", cordoned), node("n5", notReady),
		},
		pods: []*core.Pod{pod("a", "n1", "2"), pod("b", "n2", "1")},
	}
	for name, c := range map[string]struct {
		spec *core.PodSpec
		want int64
	}{
		"single GPUs":                        {replica("1"), 13},
		"each on one node":                   {replica("4"), 2},
		"none on two":                        {replica("8"), 0},
		"a taint is tolerated":               {replica("8", tolerating("team")), 1},
		"all taints are":                     {replica("1", tolerating("")), 21},
		"a node selector":                    {replica("1", func(s *core.PodSpec) { s.NodeSelector = map[string]string{"zone": "b"} }), 7},
		"affinity":                           {replica("1", within(expression("zone", core.NodeSelectorOpIn, "a", "x"))), 6},
		"affinity: any of the terms":         {replica("1", within(expression("zone", core.NodeSelectorOpIn, "a"), expression("zone", core.NodeSelectorOpNotIn, "a", "c"))), 13},
		"affinity by number":                 {replica("1", within(expression("generation", core.NodeSelectorOpGt, "9"))), 7},
		"affinity by name":                   {replica("1", within(field("metadata.name", core.NodeSelectorOpIn, "n1"))), 6},
		"affinity but for a name":            {replica("1", within(field("metadata.name", core.NodeSelectorOpNotIn, "n1"))), 7},
		"affinity: a label is there":         {replica("1", within(expression("nowhere", core.NodeSelectorOpExists))), 0},
		"affinity: an empty term is nothing": {replica("1", within(core.NodeSelectorTerm{})), 0},
		"affinity: no terms are nothing":     {replica("1", within()), 0},
		"affinity: nonsense is nothing":      {replica("1", within(expression("zone", "About", "a"), field("spec.x", core.NodeSelectorOpIn, "y"))), 0},
		"CPU bounds":                         {replica("1", requesting("cpu", "100")), 2},
		"memory bounds":                      {replica("1", requesting("memory", "700Gi")), 4},
		"two kinds of devices":               {replica("1", requesting("gpu.intel.com/xe", "1")), 0},
		"no accelerator":                     {&core.PodSpec{Containers: []core.Container{container("cpu", "1")}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			shape := ShapeOf(c.spec, Settings{})
			equal(t, c.want, cluster.inventory().Fits(&shape, nil))
		})
	}
}

func TestFitsAfterAllThatWait(t *testing.T) {
	cluster := objects{nodes: []*core.Node{node("n1"), node("n2", has("pods", "3"))}, pods: []*core.Pod{pod("a", "", "5"), pod("b", "", "9")}}
	shape := ShapeOf(replica("1"), Settings{})
	equal(t, int64(3+3), cluster.inventory().Fits(&shape, nil))
}

// readQueue reads a ClusterQueue as an API server would hand it over.
func readQueue(t *testing.T, text string) (world.Queue, error) {
	t.Helper()
	u := &unstructured.Unstructured{}
	encoded, err := yaml.YAMLToJSON([]byte("kind: ClusterQueue\n" + text))
	if err == nil {
		err = u.UnmarshalJSON(encoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	return QueueOf(u, Settings{})
}

func queueOf(t *testing.T, text string) world.Queue {
	t.Helper()
	q, err := readQueue(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

const inference = `
apiVersion: kueue.x-k8s.io/v1beta1
metadata: {name: inference}
spec:
  cohort: all
  stopPolicy: None
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: spot
      resources:
      - {name: cpu, nominalQuota: 1k}
      - {name: nvidia.com/gpu, nominalQuota: "8"}
    - name: on-demand
      resources:
      - {name: nvidia.com/gpu, nominalQuota: 4, borrowingLimit: 2}
status:
  flavorsReservation:
  - name: spot
    resources: [{name: cpu, total: "9"}, {name: nvidia.com/gpu, total: "5", borrowed: "0"}]
  - name: on-demand
    resources: [{name: nvidia.com/gpu, total: 6, borrowed: 2}]
  flavorsUsage:
  - name: spot
    resources: [{name: nvidia.com/gpu, total: "4"}]
  - name: gone
    resources: [{name: nvidia.com/gpu, total: "4"}]
`

func TestQueues(t *testing.T) {
	q := queueOf(t, inference)
	equal(t, world.Queue{Name: "inference", Cohort: "all", Quotas: []world.Quota{
		{Resource: resourceNVIDIA, Flavor: "on-demand", Nominal: 4, Reserved: 6},
		{Resource: resourceNVIDIA, Flavor: "spot", Nominal: 8, Reserved: 5, Used: 4},
	}}, q)
	newer := queueOf(t, "metadata: {name: q}\nspec: {cohortName: all, stopPolicy: HoldAndDrain}")
	equal(t, world.Queue{Name: "q", Cohort: "all", Stopped: true}, newer)
	i := objects{nodes: []*core.Node{node("n1")}}.inventory()
	i.PutQueue(q)
	i.PutQueue(newer)
	equal(t, []world.Queue{q, newer}, i.Count().Queues)
	for name, c := range map[string]struct {
		gpus  core.ResourceName
		queue *world.Queue
		want  int64
	}{
		"not queued":      {resourceNVIDIA, nil, 8},
		"bound by quotas": {resourceNVIDIA, &q, 3},
		"stopped":         {resourceNVIDIA, &newer, 0},
		"without a quota": {"nvidia.com/mig-1g.5gb", &q, 0},
	} {
		shape := ShapeOf(&core.PodSpec{Containers: []core.Container{container(c.gpus, "1")}}, Settings{})
		if got := i.Fits(&shape, c.queue); got != c.want {
			t.Errorf("%s: %d fit, want %d", name, got, c.want)
		}
	}
}

func TestQueuesThatCannotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		`spec: 3`: "gpu: ClusterQueue : .spec accessor error: 3 is of the type int64, expected map[string]interface{}",
		`spec: {resourceGroups: [{flavors: [{name: f, resources: [{name: nvidia.com/gpu, nominalQuota: many}]}]}]}`: `gpu: ClusterQueue : flavor f: nvidia.com/gpu: nominalQuota: "many": want a quantity, such as 8: ` + resource.ErrFormatWrong.Error(),
	} {
		if _, err := readQueue(t, text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func FuzzPodOf(f *testing.F) {
	f.Add("1", "100m", resourceNVIDIA, "zone", "In", "a")
	f.Add("-3", "1e40", "nvidia.com/mig-", "", "Gt", "x")
	f.Fuzz(func(t *testing.T, gpus, cpu, name, key, op, value string) {
		p := pod("a", "", "0", func(p *core.Pod) { within(expression(key, core.NodeSelectorOperator(op), value))(&p.Spec) })
		requests := p.Spec.Containers[0].Resources.Requests
		requests["cpu"], _ = resource.ParseQuantity(cpu)
		requests[core.ResourceName(name)], _ = resource.ParseQuantity(gpus)
		i := objects{nodes: []*core.Node{node("n1", has("nvidia.com/mig-", "3"))}, pods: []*core.Pod{p, pod("b", "n1", gpusOrOne(gpus))}}.inventory()
		shape := ShapeOf(&p.Spec, Settings{})
		if n := i.Fits(&shape, nil); n < 0 || n > 110 {
			t.Errorf("%d fit", n)
		}
		balanced(t, i.Count())
	})
}

func gpusOrOne(s string) string {
	if _, err := resource.ParseQuantity(s); err != nil {
		return "1"
	}
	return s
}
