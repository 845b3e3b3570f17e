package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// Apply makes objects as manifests in YAML say, or changes them: `kubectl apply --server-side` as an administrator. What a manifest
// says of status is applied too.
func (s *Server) Apply(ctx context.Context, manifests []byte) error {
	return s.each(manifests, func(of dynamic.ResourceInterface, u *unstructured.Unstructured) error {
		options := meta.ApplyOptions{FieldManager: "testbed", Force: true}
		made, err := of.Apply(ctx, u.GetName(), u.DeepCopy(), options)
		if err != nil || u.Object["status"] == nil || made.Object["kind"] == "CustomResourceDefinition" {
			return err
		}
		_, err = of.ApplyStatus(ctx, u.GetName(), u, options)
		return err
	})
}

// Delete removes the objects that manifests name, at once.
func (s *Server) Delete(ctx context.Context, manifests []byte) error {
	return s.each(manifests, func(of dynamic.ResourceInterface, u *unstructured.Unstructured) error {
		return of.Delete(ctx, u.GetName(), meta.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	})
}

// each does something with each object of some manifests, by the resource that it is one of.
func (s *Server) each(manifests []byte, do func(dynamic.ResourceInterface, *unstructured.Unstructured) error) error {
	client, err := dynamic.NewForConfig(s.REST())
	if err != nil {
		return err
	}
	finder, err := discovery.NewDiscoveryClientForConfig(s.REST())
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(finder))
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		var u unstructured.Unstructured
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a manifest: %w", err)
		}
		if len(u.Object) == 0 {
			continue
		}
		mapping, err := mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		if err != nil {
			return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		var of dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if u.GetNamespace() != "" {
			of = client.Resource(mapping.Resource).Namespace(u.GetNamespace())
		}
		if err := do(of, &u); err != nil {
			return fmt.Errorf("%s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
		}
	}
}
