package kube

import (
	"context"
	"sync"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/meridian-mesh/meridian/policies"
)

// reading is one thing that is kept up to date while it is wanted.
type reading struct {
	what string
	run  func(context.Context)
}

// read keeps up to date what is wanted of the cluster, until ctx ends. What is not wanted is not read.
func (m *member) read(ctx context.Context, c clients) {
	var running sync.WaitGroup
	defer running.Wait()
	ends := map[string]context.CancelFunc{}
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	for {
		wanted := map[string]bool{}
		for _, r := range m.readings(c) {
			wanted[r.what] = true
			if ends[r.what] == nil {
				var its context.Context
				its, ends[r.what] = context.WithCancel(ctx)
				running.Go(func() { r.run(its) })
			}
		}
		for what, end := range ends {
			if !wanted[what] {
				end()
				delete(ends, what)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		}
	}
}

// readings are what the wanted sources need.
func (m *member) readings(c clients) []reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []reading
	slices, pools := false, false
	for o := range m.byOwner {
		if o.kind != policies.FromInferencePool {
			slices = true
			continue
		}
		pools = true
		name := named{o.namespace, o.name}
		if p, ok := m.pools.byName[name]; ok {
			all = append(all, m.readPods(c.typed, name, p.selector))
		}
	}
	if slices {
		all = append(all, m.readSlices(c.typed))
	}
	if pools {
		all = append(all, m.readPools(c.dynamic))
	}
	if m.census != nil {
		all = append(all, m.readAccelerators(c)...)
	}
	return all
}

// readSlices keeps the EndpointSlices of all namespaces.
func (m *member) readSlices(client kubernetes.Interface) reading {
	const what = "endpointslices"
	r := &reflection[*discovery.EndpointSlice]{
		name: what, kind: &discovery.EndpointSlice{}, slim: slimSlice,
		from: cache.NewListWatchFromClient(client.DiscoveryV1().RESTClient(), what, meta.NamespaceAll, fields.Everything()),
		replace: func(all []*discovery.EndpointSlice) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.slices = sliceSet{listed: true}
			for _, s := range all {
				m.keepSlice(s)
			}
			m.listed(what)
			m.tellAll()
		},
		put: func(s *discovery.EndpointSlice) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.tellOf(m.keepSlice(s))
		},
		remove: func(s *discovery.EndpointSlice) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.tellOf(m.slices.put(named{s.Namespace, s.Name}, nil))
		},
		failed: func(err error) { m.fails(what, err) },
	}
	return reading{what, func(ctx context.Context) { r.run(ctx, m.log) }}
}

// listed notes that all objects of a kind have been taken in: also a word from the API server, perhaps the only one so far. The caller
// holds mu.
func (m *member) listed(what string) {
	delete(m.failing, what)
	m.answered()
}

// keepSlice takes a slice in. The caller holds mu.
func (m *member) keepSlice(s *discovery.EndpointSlice) (touched []object) {
	name := named{s.Namespace, s.Name}
	if kept, ok := sliceOf(s, m.cluster); ok {
		return m.slices.put(name, &kept)
	}
	return m.slices.put(name, nil)
}

// slimSlice drops what is large and not used.
func slimSlice(s *discovery.EndpointSlice) {
	s.ManagedFields, s.Annotations = nil, nil
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		e.NodeName, e.DeprecatedTopology = nil, nil
		if pod := podBehind(e); pod != "" {
			e.TargetRef = &core.ObjectReference{Kind: "Pod", Name: pod}
		} else {
			e.TargetRef = nil
		}
	}
}
