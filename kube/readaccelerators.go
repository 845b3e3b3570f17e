package kube

import (
	"context"
	"sync/atomic"

	core "k8s.io/api/core/v1"
	dra "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/meridian-mesh/meridian/kube/gpu"
)

// censusKinds are the kinds that accelerators are counted from.
var censusKinds = []string{"nodes", "pods", "resourceslices", "resourceclaims", "clusterqueues", "localqueues"}

// countedKind is how the census takes in one kind of objects. Its functions are called under the census' lock.
type countedKind[T meta.Object] struct {
	what string
	from cache.ListerWatcher
	kind runtime.Object
	slim func(T)
	// optional says that an API server may not have the kind.
	optional bool
	// put takes an object in, and says whether any of it was kept, and whether that changed anything.
	put    func(types.NamespacedName, T) (kept, changed bool, err error)
	remove func(types.NamespacedName) (changed bool)
}

// readAccelerators keeps what accelerators are counted from.
func (m *member) readAccelerators(c clients) []reading {
	return []reading{m.readNodes(c), m.readCountedPods(c), m.readResourceSlices(c), m.readClaims(c), m.readClusterQueues(c), m.readLocalQueues(c)}
}

func (m *member) readNodes(c clients) reading {
	i, s := &m.census.inventory, m.census.settings
	return readCounted(m, countedKind[*core.Node]{
		what: "nodes", kind: &core.Node{},
		from: cache.NewListWatchFromClient(c.typed.CoreV1().RESTClient(), "nodes", meta.NamespaceAll, fields.Everything()),
		slim: gpu.SlimNode,
		put: func(name types.NamespacedName, n *core.Node) (kept, changed bool, err error) {
			return true, i.PutNode(name.Name, gpu.NodeOf(n, s)), nil
		},
		remove: func(name types.NamespacedName) bool { return i.RemoveNode(name.Name) },
	})
}

// readCountedPods keeps the pods of all namespaces that hold accelerators, or want some. The API can't select those.
func (m *member) readCountedPods(c clients) reading {
	i, s := &m.census.inventory, m.census.settings
	selector := fields.ParseSelectorOrDie("status.phase!=Succeeded,status.phase!=Failed")
	return readCounted(m, countedKind[*core.Pod]{
		what: "pods", kind: &core.Pod{},
		from: cache.NewListWatchFromClient(c.typed.CoreV1().RESTClient(), "pods", meta.NamespaceAll, selector),
		slim: func(p *core.Pod) {
			gpu.SlimPod(p)
			if _, ok := gpu.PodOf(p, s); !ok {
				p.Spec = core.PodSpec{}
			}
		},
		put: func(name types.NamespacedName, p *core.Pod) (kept, changed bool, err error) {
			pod, ok := gpu.PodOf(p, s)
			if !ok {
				return false, i.RemovePod(name), nil
			}
			return true, i.PutPod(name, pod), nil
		},
		remove: i.RemovePod,
	})
}

func (m *member) readResourceSlices(c clients) reading {
	i, s := &m.census.inventory, m.census.settings
	return readCounted(m, countedKind[*dra.ResourceSlice]{
		what: "resourceslices", optional: true, kind: &dra.ResourceSlice{},
		from: cache.NewListWatchFromClient(c.typed.ResourceV1().RESTClient(), "resourceslices", meta.NamespaceAll, fields.Everything()),
		slim: func(r *dra.ResourceSlice) { r.ManagedFields, r.Annotations = nil, nil },
		put: func(name types.NamespacedName, r *dra.ResourceSlice) (kept, changed bool, err error) {
			slice, ok := gpu.SliceOf(r, s)
			if !ok {
				return false, i.RemoveSlice(name.Name), nil
			}
			return true, i.PutSlice(name.Name, slice), nil
		},
		remove: func(name types.NamespacedName) bool { return i.RemoveSlice(name.Name) },
	})
}

func (m *member) readClaims(c clients) reading {
	i, s := &m.census.inventory, m.census.settings
	return readCounted(m, countedKind[*dra.ResourceClaim]{
		what: "resourceclaims", optional: true, kind: &dra.ResourceClaim{},
		from: cache.NewListWatchFromClient(c.typed.ResourceV1().RESTClient(), "resourceclaims", meta.NamespaceAll, fields.Everything()),
		slim: func(r *dra.ResourceClaim) { r.ManagedFields, r.Annotations = nil, nil },
		put: func(name types.NamespacedName, r *dra.ResourceClaim) (kept, changed bool, err error) {
			claim, ok := gpu.ClaimOf(r, s)
			if !ok {
				return false, i.RemoveClaim(name), nil
			}
			return true, i.PutClaim(name, claim), nil
		},
		remove: i.RemoveClaim,
	})
}

func (m *member) readClusterQueues(c clients) reading {
	i, s := &m.census.inventory, m.census.settings
	return readCounted(m, countedKind[*unstructured.Unstructured]{
		what: "clusterqueues", optional: true, kind: &unstructured.Unstructured{}, from: kueue(c.dynamic, "clusterqueues"),
		slim: func(u *unstructured.Unstructured) { u.SetManagedFields(nil) },
		put: func(_ types.NamespacedName, u *unstructured.Unstructured) (kept, changed bool, err error) {
			q, err := gpu.QueueOf(u, s)
			if err != nil {
				return true, false, err
			}
			return true, i.PutQueue(q), nil
		},
		remove: func(name types.NamespacedName) bool { return i.RemoveQueue(name.Name) },
	})
}

func (m *member) readLocalQueues(c clients) reading {
	i := &m.census.inventory
	return readCounted(m, countedKind[*unstructured.Unstructured]{
		what: "localqueues", optional: true, kind: &unstructured.Unstructured{}, from: kueue(c.dynamic, "localqueues"),
		slim: func(u *unstructured.Unstructured) { u.SetManagedFields(nil) },
		put: func(name types.NamespacedName, u *unstructured.Unstructured) (kept, changed bool, err error) {
			leads, _, err := unstructured.NestedString(u.Object, "spec", "clusterQueue")
			if err != nil {
				return true, false, err
			}
			return true, i.PutLocalQueue(name, leads), nil
		},
		remove: i.RemoveLocalQueue,
	})
}

// readCounted keeps the objects of one kind in the census. A kind that the API server does not have has no objects: it may get it later. What
// was there once is not gone for that: whoever removes a kind removes its objects first.
func readCounted[T meta.Object](m *member, k countedKind[T]) reading {
	r := &reflection[T]{
		name: k.what, kind: k.kind, from: k.from, slim: k.slim,
		replace: func(all []T) {
			m.census.take(func(c *census) bool { news := c.nowListed(k.what); return replaceCounted(m, k, all) || news })
			m.mu.Lock()
			defer m.mu.Unlock()
			m.listed(k.what)
		},
		put:    func(o T) { m.census.take(func(*census) bool { return putCounted(m, k, o) }) },
		remove: func(o T) { m.census.take(func(*census) bool { return removeCounted(m, k, nameOf(o)) }) },
		failed: func(err error) {
			if k.optional && errors.IsNotFound(err) {
				m.census.take(func(c *census) bool { return c.nowListed(k.what) })
				err = nil
			}
			m.fails(k.what, err)
		},
	}
	return reading{k.what, func(ctx context.Context) { r.run(ctx, m.log) }}
}

func nameOf(o meta.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// replaceCounted takes in all that there are, and drops what is not among them.
func replaceCounted[T meta.Object](m *member, k countedKind[T], all []T) (changed bool) {
	before := m.census.kept[k.what]
	m.census.kept[k.what] = make(map[types.NamespacedName]bool, len(before))
	for _, o := range all {
		changed = putCounted(m, k, o) || changed
	}
	for name := range before {
		if !m.census.kept[k.what][name] {
			changed = k.remove(name) || changed
		}
	}
	return changed
}

func putCounted[T meta.Object](m *member, k countedKind[T], o T) (changed bool) {
	name := nameOf(o)
	kept, changed, err := k.put(name, o)
	if err != nil {
		m.log.Warn("object can't be read: what it said last stays", "kind", k.what, "object", name.String(), "error", err)
	}
	if kept {
		m.census.kept[k.what][name] = true
	} else {
		delete(m.census.kept[k.what], name)
	}
	return changed
}

func removeCounted[T meta.Object](m *member, k countedKind[T], name types.NamespacedName) (changed bool) {
	delete(m.census.kept[k.what], name)
	return k.remove(name)
}

// take has the census take something in, and counted again where that changed anything.
func (c *census) take(in func(*census) (changed bool)) {
	c.mu.Lock()
	changed := in(c)
	c.mu.Unlock()
	if changed {
		c.changed()
	}
}

// nowListed notes that all objects of a kind are known, and says whether that is news. The caller holds mu.
func (c *census) nowListed(kind string) (news bool) {
	news = !c.listed[kind]
	c.listed[kind] = true
	if c.kept[kind] == nil {
		c.kept[kind] = map[types.NamespacedName]bool{}
	}
	return news
}

// kueue lists and watches objects of Kueue, in the newest version that the API server has.
func kueue(client dynamic.Interface, resource string) cache.ListerWatcher {
	versions := []string{"v1beta2", "v1beta1"}
	var newest atomic.Int64 // of versions
	at := func(i int64) dynamic.ResourceInterface {
		return client.Resource(schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: versions[i], Resource: resource})
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o meta.ListOptions) (list runtime.Object, err error) {
			for i := range versions {
				if list, err = at(int64(i)).List(ctx, o); !errors.IsNotFound(err) {
					newest.Store(int64(i))
					break
				}
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o meta.ListOptions) (watch.Interface, error) {
			return at(newest.Load()).Watch(ctx, o)
		},
	}
}
