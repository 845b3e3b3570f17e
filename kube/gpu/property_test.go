package gpu

import (
	"fmt"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	dra "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/meridian-mesh/meridian/world"
)

// balanced checks what holds for each count.
func balanced(t interface{ Errorf(string, ...any) }, c world.Accelerators) {
	for _, r := range c.Rows {
		least := min(r.Total, r.Used, r.Pending, r.Free, r.Partly, r.Barred, r.BarredUsed)
		if least < 0 || r.Used+r.Pending+r.Free != r.Total || r.BarredUsed > r.Barred || r.Partly > r.Used+r.Pending {
			t.Errorf("row %+v", r)
		}
	}
}

// A step is one event of a watch: an object as it is now, or as gone.
type step struct {
	kind, name string
	gone       bool
	node       *core.Node
	pod        *core.Pod
	slice      *dra.ResourceSlice
	claim      *dra.ResourceClaim
}

func (s step) apply(i *Inventory) {
	name := types.NamespacedName{Namespace: "models", Name: s.name}
	switch s.kind {
	case "node":
		i.PutNode(s.name, NodeOf(s.node, Settings{}))
		if s.gone {
			i.RemoveNode(s.name)
		}
	case "pod":
		if p, ok := PodOf(s.pod, Settings{}); ok && !s.gone {
			i.PutPod(name, p)
			return
		}
		i.RemovePod(name)
	case "slice":
		if kept, ok := SliceOf(s.slice, Settings{}); ok && !s.gone {
			i.PutSlice(s.name, kept)
			return
		}
		i.RemoveSlice(s.name)
	case "claim":
		if kept, ok := ClaimOf(s.claim, Settings{}); ok && !s.gone {
			i.PutClaim(name, kept)
			return
		}
		i.RemoveClaim(name)
	}
}

func drawStep(t *rapid.T) step {
	pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	s := step{kind: pick("kind", "node", "pod", "pod", "pod", "slice", "claim", "claim"), gone: rapid.IntRange(0, 4).Draw(t, "gone") == 0}
	switch s.kind {
	case "node":
		s.name = pick("node", "n1", "n2", "n3")
		s.node = node(s.name, labelled("karpenter.sh/capacity-type", pick("class", "spot", "on-demand")), has(resourceNVIDIA, pick("gpus", "0", "4", "8")))
		s.node.Spec.Unschedulable = rapid.Bool().Draw(t, "cordoned")
	case "pod":
		s.name = pick("pod", "a", "b", "c", "d", "e")
		s.pod = pod(s.name, pick("on", "", "n1", "n2", "n3"), pick("asks", "1", "4", "8"))
		s.pod.Status.Phase = core.PodPhase(pick("phase", "Running", "Pending", "Failed"))
	case "slice":
		s.name = pick("slice", "n1-a", "n2-a", "n2-b")
		on, _, _ := strings.Cut(s.name, "-")
		s.slice = slice(s.name, on, rapid.Int64Range(1, 2).Draw(t, "of"), device0(s.name+"-0"), device0(s.name+"-1"), halves(s.name + "-2")[0], halves(s.name + "-2")[1], halves(s.name + "-2")[2])
		s.slice.Spec.Pool.Generation = rapid.Int64Range(1, 2).Draw(t, "generation")
		s.slice.Spec.SharedCounters = sets(s.name + "-2")
	case "claim":
		s.name = pick("claim", "x", "y", "z")
		s.claim = claim(s.name, "gpu.nvidia.com", rapid.Int64Range(1, 2).Draw(t, "count"))
		if slice := pick("of", "", "n1-a", "n2-a", "n2-b"); slice != "" {
			on, _, _ := strings.Cut(slice, "-")
			allocate(s.claim, on, slice+pick("device", "-0", "-1", "-2", "-2-half-0"))
		}
	}
	return s
}

// What events have led to is what a look at all objects gives, whatever the order.
func TestEventsLeadToWhatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 0, 40).Draw(t, "steps")
		one, last := &Inventory{}, map[string]step{}
		for _, s := range steps {
			s.apply(one)
			last[s.kind+s.name] = s
			balanced(t, one.Count())
		}
		other := &Inventory{}
		for _, s := range last { // in any order
			if !s.gone {
				s.apply(other)
			}
		}
		if got, want := fmt.Sprintf("%+v", one.Count()), fmt.Sprintf("%+v", other.Count()); got != want {
			t.Errorf("after events\n%s, from scratch\n%s", got, want)
		}
		for _, spec := range []*core.PodSpec{replica("1"), replica("4"), replica("8", requesting("cpu", "100"))} {
			shape := ShapeOf(spec, Settings{}, &claim("c", "mig.nvidia.com", 1).Spec)
			if got, want := one.Fits(&shape, nil), other.Fits(&shape, nil); got != want {
				t.Errorf("%d fit after events, %d from scratch", got, want)
			}
		}
	})
}

// What fits can be put there: once that many wait they are all settled, and no more fit.
func TestWhatFitsFindsAPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := &Inventory{}
		for _, s := range rapid.SliceOfN(rapid.Custom(drawStep), 0, 20).Draw(t, "steps") {
			if s.apply(i); s.pod != nil && s.pod.Spec.NodeName == "" {
				i.RemovePod(types.NamespacedName{Namespace: "models", Name: s.name})
			}
		}
		asks := rapid.SampledFrom([]string{"1", "3", "8"}).Draw(t, "asks")
		shape := ShapeOf(replica(asks), Settings{})
		n := i.Fits(&shape, nil)
		for k := range n {
			kept, _ := PodOf(pod("a", "", asks), Settings{})
			i.PutPod(types.NamespacedName{Namespace: "new", Name: fmt.Sprint(k)}, kept)
		}
		if left := i.Fits(&shape, nil); left != 0 {
			t.Errorf("%d fitted, and then %d more", n, left)
		}
		for _, d := range i.Count().Waiting {
			if d.Resource == resourceNVIDIA {
				t.Errorf("%d fitted, but %+v found no place", n, d)
			}
		}
	})
}

// large is a cluster of 500 nodes and 5,000 pods.
func large(b *testing.B) *Inventory {
	b.Helper()
	i := &Inventory{}
	for k := range 500 {
		name := fmt.Sprintf("node-%03d", k)
		i.PutNode(name, NodeOf(node(name, labelled("karpenter.sh/capacity-type", []string{"spot", "on-demand"}[k%2]), has("pods", "250")), Settings{}))
	}
	for k := range 5000 {
		kept, _ := PodOf(pod("", fmt.Sprintf("node-%03d", k%500), []string{"0", "1"}[k%3%2]), Settings{})
		i.PutPod(types.NamespacedName{Namespace: "models", Name: fmt.Sprintf("llama-%04d", k)}, kept)
	}
	return i
}

func BenchmarkCount(b *testing.B) {
	i := large(b)
	for b.Loop() {
		i.Count()
	}
}

func BenchmarkCountDevices(b *testing.B) {
	i := &Inventory{}
	for k := range 500 {
		name := fmt.Sprintf("node-%03d", k)
		i.PutNode(name, NodeOf(node(name, bare), Settings{}))
		var devices []dra.Device
		for g := range 8 {
			devices = append(devices, device0(fmt.Sprintf("gpu-%d", g)))
		}
		kept, _ := SliceOf(slice(name, name, 1, devices...), Settings{})
		i.PutSlice(name, kept)
	}
	for b.Loop() {
		i.Count()
	}
}

func BenchmarkFits(b *testing.B) {
	i := large(b)
	shape := ShapeOf(replica("2", within(expression(core.LabelHostname, core.NodeSelectorOpExists))), Settings{})
	for b.Loop() {
		i.Fits(&shape, nil)
	}
}

func BenchmarkPutPod(b *testing.B) {
	i := large(b)
	name := types.NamespacedName{Namespace: "models", Name: "llama-0000"}
	running, _ := PodOf(pod("a", "node-001", "1"), Settings{})
	waits, _ := PodOf(pod("a", "", "1"), Settings{})
	for b.Loop() {
		i.PutPod(name, running)
		i.PutPod(name, waits)
	}
}

func BenchmarkPodOf(b *testing.B) {
	p := pod("a", "node-001", "1")
	p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("4")
	for b.Loop() {
		PodOf(p, Settings{})
	}
}
