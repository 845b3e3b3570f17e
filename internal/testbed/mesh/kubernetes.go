package mesh

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/meridian-mesh/meridian/internal/testbed/kube"
)

// Pod is how a cluster's API server lists a server.
type Pod string

// How it may.
const (
	// PodReady takes requests.
	PodReady Pod = "conditions: {ready: true, serving: true, terminating: false}"
	// PodUnready takes none.
	PodUnready Pod = "conditions: {ready: false, serving: false, terminating: false}"
	// PodTerminating is about to end, and still serves.
	PodTerminating Pod = "conditions: {ready: false, serving: true, terminating: true}"
	// PodGone is not listed.
	PodGone Pod = ""
)

const (
	podNamespace = "models"
	podPort      = 8000
)

// startKubernetes starts the clusters' API servers, all at once, where there are to be some, and lists their servers.
func (m *Mesh) startKubernetes(ctx context.Context) error {
	if !m.config.Kubernetes {
		return nil
	}
	var starting errgroup.Group
	for _, c := range m.clusters {
		starting.Go(func() error { return c.startKubernetes(ctx) })
	}
	return starting.Wait()
}

func (c *Member) startKubernetes(ctx context.Context) error {
	var err error
	if c.kube, err = kube.Start(ctx, kube.Config{Name: c.Name, Address: c.source}); err != nil {
		return err
	}
	config, err := c.kube.Kubeconfig()
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.kubeconfig(), config, 0o600); err != nil {
		return err
	}
	if err := c.kube.Apply(ctx, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+podNamespace+"}\n")); err != nil {
		return err
	}
	return c.list(ctx)
}

func (c *Member) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// Kubernetes is the cluster's API server; nil where it has none.
func (c *Member) Kubernetes() *kube.Server { return c.kube }

// SetPod changes how the API server lists one of the cluster's servers. The pod of one that is gone is deleted.
func (c *Member) SetPod(ctx context.Context, server int, p Pod) error {
	c.pods[server] = p
	if err := c.list(ctx); err != nil || p != PodGone {
		return err
	}
	return c.kube.Delete(ctx, []byte(podOf(server)))
}

// Node is a node of a cluster with GPUs, on which no server runs.
type Node struct {
	Name string
	GPUs int
	// Cordoned nodes take no pods.
	Cordoned bool
}

// SetNode adds a node to the cluster, or changes it.
func (c *Member) SetNode(ctx context.Context, n Node) error {
	manifest := fmt.Appendf(nil, `
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {nvidia.com/gpu.product: H100}}
spec: {taints: [], unschedulable: %v}
status:
  allocatable: {cpu: "64", memory: 1Ti, pods: "110", nvidia.com/gpu: "%d"}
  conditions: [{type: Ready, status: "True", reason: KubeletReady, message: ready}]
`, n.Name, n.Cordoned, n.GPUs)
	if err := c.kube.Apply(ctx, manifest); err != nil {
		return err
	}
	return c.kube.Apply(ctx, manifest) // a node that is new is tainted as not ready, for a controller to mend
}

// serversNode is the node on which all servers run. Each has a GPU of it, and none is left.
const serversNode = "servers"

// podOf is the pod of a server.
func podOf(server int) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {namespace: %s, name: %s}
spec: {nodeName: %s, containers: [{name: vllm, image: vllm, resources: {limits: {nvidia.com/gpu: 1}}}]}
`, podNamespace, podName(server), serversNode)
}

func podName(server int) string { return fmt.Sprintf("%s-%d", ServiceName, server) }

// AddServer starts one more server, and has the API server list it.
func (c *Member) AddServer(ctx context.Context) error {
	if err := c.addServer(c.mesh.run); err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	return c.list(ctx)
}

// list writes the EndpointSlice of the cluster's servers, and their pods.
func (c *Member) list(ctx context.Context) error {
	if err := c.SetNode(ctx, Node{Name: serversNode, GPUs: len(c.servers)}); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {namespace: %s, name: %s-1, labels: {kubernetes.io/service-name: %s}}\n", podNamespace, ServiceName, ServiceName)
	fmt.Fprintf(&b, "addressType: IPv4\nports: [{name: http, port: %d}]\nendpoints:\n", podPort)
	for i, s := range c.servers {
		if c.pods[i] != PodGone {
			fmt.Fprintf(&b, "- {addresses: [%s], targetRef: {kind: Pod, namespace: %s, name: %s}, %s}\n", s.Addr().Addr(), podNamespace, podName(i), c.pods[i])
		}
	}
	for i := range c.servers {
		if c.pods[i] != PodGone {
			b.WriteString(podOf(i))
		}
	}
	return c.kube.Apply(ctx, []byte(b.String()))
}
