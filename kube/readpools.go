package kube

import (
	"context"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/meridian-mesh/meridian/policies"
)

// readPools keeps the InferencePools of all namespaces: there are few.
func (m *member) readPools(client dynamic.Interface) reading {
	const what = "inferencepools"
	of := client.Resource(inferencePools)
	r := &reflection[*unstructured.Unstructured]{
		name: what, kind: &unstructured.Unstructured{},
		from: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o meta.ListOptions) (runtime.Object, error) { return of.List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o meta.ListOptions) (watch.Interface, error) {
				return of.Watch(ctx, o)
			},
		},
		replace: func(all []*unstructured.Unstructured) {
			m.mu.Lock()
			m.pools.listed, m.pools.byName = true, map[named]inferencePool{}
			for _, u := range all {
				m.keepPool(u)
			}
			m.listed(what)
			m.tellAll()
			m.mu.Unlock()
			m.poke()
		},
		put: func(u *unstructured.Unstructured) {
			m.mu.Lock()
			m.keepPool(u)
			m.tellOf([]object{{policies.FromInferencePool, u.GetNamespace(), u.GetName()}})
			m.mu.Unlock()
			m.poke()
		},
		remove: func(u *unstructured.Unstructured) {
			m.mu.Lock()
			delete(m.pools.byName, named{u.GetNamespace(), u.GetName()})
			m.tellOf([]object{{policies.FromInferencePool, u.GetNamespace(), u.GetName()}})
			m.mu.Unlock()
			m.poke()
		},
		failed: func(err error) { m.fails(what, err) },
	}
	return reading{what, func(ctx context.Context) { r.run(ctx, m.log) }}
}

// keepPool takes an InferencePool in; one that can't be read stays as it was. The caller holds mu.
func (m *member) keepPool(u *unstructured.Unstructured) {
	p, err := inferencePoolOf(u)
	if err != nil {
		m.log.Warn("InferencePool can't be read: what it said last stays", "error", err)
		return
	}
	m.pools.byName[named{u.GetNamespace(), u.GetName()}] = p
}

// readPods keeps the pods of one InferencePool: those that its selector selects, and no others.
func (m *member) readPods(client kubernetes.Interface, of named, selector string) reading {
	what := "pods of InferencePool " + of.namespace + "/" + of.name + ": " + selector
	pool := object{policies.FromInferencePool, of.namespace, of.name}
	r := &reflection[*core.Pod]{
		name: what, kind: &core.Pod{}, slim: slimPod,
		from: cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "pods", of.namespace, func(o *meta.ListOptions) {
			o.LabelSelector, o.FieldSelector = selector, "status.phase!=Succeeded,status.phase!=Failed"
		}),
		replace: func(all []*core.Pod) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.pools.pods == nil {
				m.pools.pods = map[named]podSet{}
			}
			m.pools.pods[of] = podSet{selector, map[named]pod{}}
			for _, p := range all {
				m.keepPod(of, p)
			}
			m.listed(what)
			m.tellOf([]object{pool})
		},
		put: func(p *core.Pod) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.keepPod(of, p)
			m.tellOf([]object{pool})
		},
		remove: func(p *core.Pod) {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.pools.pods[of].byName, named{p.Namespace, p.Name})
			m.tellOf([]object{pool})
		},
		failed: func(err error) { m.fails(what, err) },
	}
	return reading{what, func(ctx context.Context) { r.run(ctx, m.log) }}
}

// keepPod takes a pod in, or drops it where it serves nothing. The caller holds mu.
func (m *member) keepPod(of named, p *core.Pod) {
	name := named{p.Namespace, p.Name}
	if kept, ok := podOf(p); ok {
		m.pools.pods[of].byName[name] = kept
	} else {
		delete(m.pools.pods[of].byName, name)
	}
}

// slimPod drops what is large and not used.
func slimPod(p *core.Pod) {
	p.ManagedFields, p.Annotations, p.Spec = nil, nil, core.PodSpec{}
	p.Status.ContainerStatuses, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses = nil, nil, nil
}
