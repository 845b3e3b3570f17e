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

// SetPod changes how the API server lists one of the cluster's servers.
func (c *Member) SetPod(ctx context.Context, server int, p Pod) error {
	c.pods[server] = p
	return c.list(ctx)
}

// AddServer starts one more server, and has the API server list it.
func (c *Member) AddServer(ctx context.Context) error {
	if err := c.addServer(c.mesh.run); err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	return c.list(ctx)
}

// list writes the EndpointSlice of the cluster's servers.
func (c *Member) list(ctx context.Context) error {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {namespace: %s, name: %s-1, labels: {kubernetes.io/service-name: %s}}\n", podNamespace, ServiceName, ServiceName)
	fmt.Fprintf(&b, "addressType: IPv4\nports: [{name: http, port: %d}]\nendpoints:\n", podPort)
	for i, s := range c.servers {
		if c.pods[i] != PodGone {
			fmt.Fprintf(&b, "- {addresses: [%s], %s}\n", s.Addr().Addr(), c.pods[i])
		}
	}
	return c.kube.Apply(ctx, []byte(b.String()))
}
