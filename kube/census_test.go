package kube

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// counts are what a Watcher has said of accelerators.
type counts struct {
	told chan world.AcceleratorsCounted
}

func newCounts() *counts { return &counts{make(chan world.AcceleratorsCounted, 1000)} }

func (c *counts) take(f world.AcceleratorsCounted) { c.told <- f }

// until waits until what was counted is what a test wants of it.
func until[T any](t *testing.T, c *counts, what string, want T, of func(world.AcceleratorsCounted) T) {
	t.Helper()
	got := "nothing was counted"
	for deadline := time.After(60 * time.Second); ; {
		select {
		case f := <-c.told:
			if reflect.DeepEqual(of(f), want) {
				return
			}
			got = gocmp.Diff(want, of(f))
		case <-deadline:
			t.Fatalf("%s (-want +got):\n%s", what, got)
		}
	}
}

// counting runs a Watcher that counts, until the test ends.
func counting(t *testing.T, set *policies.Set) (*Watcher, *counts) {
	t.Helper()
	c := newCounts()
	w, _ := watchingAs(t, Config{Counted: c.take, Recount: 20 * time.Millisecond}, set)
	return w, c
}

// gpuNode is a node of 8 H100s, with further fields of its spec.
func gpuNode(name, spec string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {nvidia.com/gpu.product: H100, karpenter.sh/capacity-type: spot}}
spec: {taints: [], %s}
status:
  allocatable: {cpu: "64", memory: 1Ti, pods: "110", nvidia.com/gpu: "8"}
  conditions: [{type: Ready, status: "True", reason: KubeletReady, message: ready}]
---
`, name, spec)
}

// applyNodes makes nodes, or changes them. An API server taints a node that is new as not ready, for a controller to mend.
func (c *cluster) applyNodes(manifests string) {
	c.t.Helper()
	c.apply(manifests)
	c.apply(manifests)
}

// gpuPod is a pod of 3 GPUs on a node, or on none, with further labels.
func gpuPod(name, node, labels string) string {
	on := ""
	if node != "" {
		on = "nodeName: " + node + ", "
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: models, name: %s, labels: {%s}}
spec: {%scontainers: [{name: vllm, image: vllm, resources: {limits: {nvidia.com/gpu: 3}}}]}
---
`, name, labels, on)
}

// behind has the only slice of Service models/llama lead to pods.
func behind(pods ...string) string {
	text := "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {namespace: models, name: a, labels: {kubernetes.io/service-name: llama}}\n" +
		"addressType: IPv4\nports: [{name: http, port: 8000}]\nendpoints:\n"
	for i, p := range pods {
		text += fmt.Sprintf("- {addresses: [10.0.0.%d], targetRef: {kind: Pod, namespace: models, name: %s}}\n", i+1, p)
	}
	return text
}

// rowsOf are the rows of a count, in short.
func rowsOf(f world.AcceleratorsCounted) (rows []string) {
	for _, r := range f.Accelerators.Rows {
		rows = append(rows, fmt.Sprintf("%s %s: %d total, %d used, %d pending, %d free, %d barred", r.Product, r.Class, r.Total, r.Used, r.Pending, r.Free, r.Barred))
	}
	return rows
}

// poolsOf are the pools of a count, in short.
func poolsOf(f world.AcceleratorsCounted) (pools []string) {
	for _, p := range f.Pools {
		held := int64(0)
		for _, h := range p.Holds {
			held += h.Devices
		}
		pools = append(pools, fmt.Sprintf("%s holds %d, %d more fit", p.Service, held, p.Fit))
	}
	return pools
}

// What a cluster's nodes have, what its pods hold and what waits is counted as it changes.
func TestAcceleratorsAreCountedAsTheyChange(t *testing.T) {
	c := startCluster(t, "fra-1")
	c.applyNodes(gpuNode("a", ""))
	c.apply(gpuPod("one", "a", "") + behind("one"))
	w, counted := counting(t, serving(fromService, c))
	until(t, counted, "one pod runs", []string{"H100 spot: 8 total, 3 used, 0 pending, 5 free, 0 barred"}, rowsOf)
	for _, step := range []struct {
		what string
		do   func()
		rows string
		pool string
	}{
		{"a second pod runs, which is of nobody", func() { c.apply(gpuPod("two", "a", "")) }, "H100 spot: 8 total, 6 used, 0 pending, 2 free, 0 barred", "llama holds 3, 0 more fit"},
		{"it is of the service", func() { c.apply(behind("one", "two")) }, "H100 spot: 8 total, 6 used, 0 pending, 2 free, 0 barred", "llama holds 6, 0 more fit"},
		{"another node", func() { c.applyNodes(gpuNode("b", "")) }, "H100 spot: 16 total, 6 used, 0 pending, 10 free, 0 barred", "llama holds 6, 2 more fit"},
		{"a pod waits", func() { c.apply(gpuPod("three", "", "")) }, "H100 spot: 16 total, 6 used, 3 pending, 7 free, 0 barred", "llama holds 6, 1 more fit"},
		{"the new node is cordoned", func() { c.applyNodes(gpuNode("b", "unschedulable: true")) }, "H100 spot: 8 total, 6 used, 0 pending, 2 free, 8 barred", "llama holds 6, 0 more fit"},
		{"and opened again", func() { c.applyNodes(gpuNode("b", "unschedulable: false")) }, "H100 spot: 16 total, 6 used, 3 pending, 7 free, 0 barred", "llama holds 6, 1 more fit"},
		{"what waited is gone", func() { c.remove(gpuPod("three", "", "")) }, "H100 spot: 16 total, 6 used, 0 pending, 10 free, 0 barred", "llama holds 6, 2 more fit"},
		{"a pod ends", func() { c.remove(gpuPod("two", "a", "")) }, "H100 spot: 16 total, 3 used, 0 pending, 13 free, 0 barred", "llama holds 3, 3 more fit"},
		{"a node is gone", func() { c.remove(gpuNode("b", "")) }, "H100 spot: 8 total, 3 used, 0 pending, 5 free, 0 barred", "llama holds 3, 1 more fit"},
	} {
		step.do()
		until(t, counted, step.what, []string{step.rows, step.pool}, func(f world.AcceleratorsCounted) []string {
			return append(rowsOf(f), poolsOf(f)...)
		})
	}
	if s := w.Status(); len(s[0].Problems) > 0 {
		t.Errorf("problems: %v", s[0].Problems)
	}
}

// Devices of a DRA driver are counted from slices and claims.
func TestDevicesOfDriversAreCounted(t *testing.T) {
	c := startCluster(t, "fra-1")
	const claim = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {namespace: models, name: one}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
status: {allocation: {devices: {results: [{request: gpu, driver: gpu.nvidia.com, pool: a, device: gpu-0}]}}}
`
	c.applyNodes(strings.ReplaceAll(gpuNode("a", ""), `, nvidia.com/gpu: "8"`, ""))
	c.apply(`
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a-gpus}
spec:
  driver: gpu.nvidia.com
  nodeName: a
  pool: {name: a, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0, attributes: {productName: {string: H100}}}, {name: gpu-1, attributes: {productName: {string: H100}}}]
---` + claim)
	_, counted := counting(t, serving(fromService, c))
	until(t, counted, "a device is allocated", []string{"H100 spot: 2 total, 1 used, 0 pending, 1 free, 0 barred"}, rowsOf)
	c.remove(claim)
	until(t, counted, "the claim is gone", []string{"H100 spot: 2 total, 0 used, 0 pending, 2 free, 0 barred"}, rowsOf)
}

// kueueCRDs stand in for those of Kueue: any object is valid.
func kueueCRDs() string {
	text := ""
	for plural, kind := range map[string]string{"clusterqueues": "ClusterQueue", "localqueues": "LocalQueue"} {
		scope := "Namespaced"
		if kind == "ClusterQueue" {
			scope = "Cluster"
		}
		text += fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.kueue.x-k8s.io}
spec:
  group: kueue.x-k8s.io
  names: {plural: %s, kind: %s}
  scope: %s
  versions:
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---`, plural, plural, kind, scope)
	}
	return text
}

const queues = `
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: inference}
spec: {resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: [{name: h100, resources: [{name: nvidia.com/gpu, nominalQuota: %d}]}]}]}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {namespace: models, name: models}
spec: {clusterQueue: inference}
`

// Kueue may be installed while a cluster is read. From then on its quotas bound what fits.
func TestQuotasOfKueueBoundWhatFits(t *testing.T) {
	c := startCluster(t, "fra-1")
	c.applyNodes(gpuNode("a", "") + gpuNode("b", ""))
	c.apply(gpuPod("one", "a", "kueue.x-k8s.io/queue-name: models") + behind("one"))
	_, counted := counting(t, serving(fromService, c))
	until(t, counted, "without Kueue", []string{"llama holds 3, 3 more fit"}, poolsOf)
	c.apply(kueueCRDs())
	eventually(t, "queues are served", func() bool { return c.Apply(t.Context(), fmt.Appendf(nil, queues, 7)) == nil })
	until(t, counted, "a quota of 7", []string{"llama holds 3, 2 more fit"}, poolsOf)
	c.apply(fmt.Sprintf(queues, 4))
	until(t, counted, "a quota of 4", []string{"llama holds 3, 1 more fit"}, poolsOf)
}

// What was counted last stays while an API server is away. What would fit then, nobody can say, and what has changed meanwhile is
// known once it is back.
func TestNothingFitsInAClusterThatIsNotHeard(t *testing.T) {
	c := startCluster(t, "fra-1")
	c.applyNodes(gpuNode("a", ""))
	c.apply(gpuPod("one", "a", "") + gpuPod("two", "a", "") + behind("one"))
	w, counted := counting(t, serving(fromService, c))
	until(t, counted, "two pods run", []string{"H100 spot: 8 total, 6 used, 0 pending, 2 free, 0 barred", "llama holds 3, 0 more fit"}, func(f world.AcceleratorsCounted) []string {
		return append(rowsOf(f), poolsOf(f)...)
	})
	c.remove(gpuPod("two", "a", ""))
	until(t, counted, "one pod runs", []string{"llama holds 3, 1 more fit"}, poolsOf)
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, counted, "the server is away", []string{"H100 spot: 8 total, 3 used, 0 pending, 5 free, 0 barred", "llama holds 3, 0 more fit"}, func(f world.AcceleratorsCounted) []string {
		return append(rowsOf(f), poolsOf(f)...)
	})
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, counted, "the server is back", []string{"llama holds 3, 1 more fit"}, poolsOf)
	c.applyNodes(gpuNode("b", ""))
	until(t, counted, "a node has come", []string{"llama holds 3, 3 more fit"}, poolsOf)
	if s := w.Status(); s[0].Stale {
		t.Errorf("status %+v", s)
	}
}

// The pods of an InferencePool are known by its selector.
func TestWhatAnInferencePoolHoldsIsCounted(t *testing.T) {
	c := startCluster(t, "fra-1")
	c.installInferencePools()
	c.applyNodes(gpuNode("a", ""))
	c.apply(strings.ReplaceAll(gpuPod("one", "a", "app: llama"), "---", "status: {phase: Running, podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}]}\n---"))
	_, counted := counting(t, serving(fromPool, c))
	until(t, counted, "its only pod runs", []string{"llama holds 3, 1 more fit"}, poolsOf)
}

// Accelerators that are not to be counted are not read.
func TestADisabledCensusReadsNothing(t *testing.T) {
	c := startCluster(t, "fra-1")
	c.applyNodes(gpuNode("a", ""))
	c.apply(behind("one"))
	set := serving(fromService, c)
	set.Clusters[0].Spec.Kubernetes.Accelerators = &policies.Accelerators{Disabled: true}
	counted := newCounts()
	role := memberRole(t)
	role.Rules = role.Rules[:3]
	c.asReader(role)
	w, f := watchingAs(t, Config{Counted: counted.take, Recount: 20 * time.Millisecond}, set)
	f.until(t, poolIn("fra-1"), map[string]world.Condition{"10.0.0.1:8000": world.Ready})
	eventually(t, "it is heard", func() bool { return !w.Status()[0].Heard.IsZero() })
	if s := w.Status(); len(s[0].Problems) > 0 || len(counted.told) > 0 {
		t.Errorf("status %+v, counted %d times", s, len(counted.told))
	}
}
