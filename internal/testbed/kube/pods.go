package kube

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Crowd is many pods alike, which run nowhere.
type Crowd struct {
	// Namespace is made where it is missing. Required.
	Namespace string
	// Node is where they are bound. Required.
	Node string
	// Pods is how many there are to be.
	Pods int
	// GPUs is how many nvidia.com/gpu each holds.
	GPUs int
}

// MakePods makes a crowd of pods. It takes about a millisecond a pod.
func (s *Server) MakePods(ctx context.Context, c Crowd) error {
	config := s.REST()
	config.WrapTransport = nil // thousands of requests must not take thousands of connections
	config.ContentType = "application/vnd.kubernetes.protobuf"
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("make pods: %w", err)
	}
	defer transport.CloseIdleConnections()
	client, err := kubernetes.NewForConfigAndClient(config, transport)
	if err != nil {
		return fmt.Errorf("make pods: %w", err)
	}
	if err := s.Apply(ctx, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+c.Namespace+"}\n")); err != nil {
		return fmt.Errorf("make pods: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i := range c.Pods {
		g.Go(func() error {
			_, err := client.CoreV1().Pods(c.Namespace).Create(ctx, c.pod(i), meta.CreateOptions{})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("make pods: %w", err)
	}
	return nil
}

func (c Crowd) pod(i int) *core.Pod {
	limits := core.ResourceList{"cpu": resource.MustParse("1")}
	if c.GPUs > 0 {
		limits["nvidia.com/gpu"] = *resource.NewQuantity(int64(c.GPUs), resource.DecimalSI)
	}
	return &core.Pod{
		ObjectMeta: meta.ObjectMeta{Namespace: c.Namespace, Name: fmt.Sprintf("crowd-%05d", i), Labels: map[string]string{"app": "crowd"}},
		Spec: core.PodSpec{NodeName: c.Node, Containers: []core.Container{{
			Name: "main", Image: "main", Resources: core.ResourceRequirements{Limits: limits},
			Env: []core.EnvVar{{Name: "MODEL", Value: "meta-llama/Llama-3.1-70B-Instruct"}},
		}}},
	}
}
