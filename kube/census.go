package kube

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/meridian-mesh/meridian/kube/gpu"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// census is what a member cluster holds of what accelerators are counted from.
type census struct {
	// Set once.
	settings gpu.Settings
	wake     chan struct{} // holds one token while something is other than at the last count

	mu        sync.Mutex
	inventory gpu.Inventory   // under mu
	listed    map[string]bool // under mu: the kinds of which all objects have been taken in
	// kept are, by kind, those of which something is in the inventory, whoever read them.
	kept map[string]map[types.NamespacedName]bool // under mu
}

func newCensus(a *policies.Accelerators) *census {
	return &census{settings: settingsOf(a), wake: make(chan struct{}, 1), listed: map[string]bool{}, kept: map[string]map[types.NamespacedName]bool{}}
}

// settingsOf are a cluster's settings in the words of the inventory.
func settingsOf(a *policies.Accelerators) (s gpu.Settings) {
	if a == nil {
		return s
	}
	for _, r := range a.Resources {
		s.Resources = append(s.Resources, gpu.Resource(r))
	}
	s.Drivers, s.Tolerate, s.DeviceClasses = a.Drivers, a.Tolerate, map[string]gpu.DeviceClass{}
	for _, c := range a.DeviceClasses {
		class := gpu.DeviceClass{Kind: c.Driver, Product: c.Product}
		if c.Partitions {
			_, domain, _ := strings.Cut(c.Driver, ".")
			class.Kind = "mig." + domain
		}
		s.DeviceClasses[c.Name] = class
	}
	return s
}

// changed has the accelerators counted again. There may be no census.
func (c *census) changed() {
	if c == nil {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// count counts the cluster's accelerators whenever something is other than before, until ctx ends.
func (m *member) count(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.census.wake:
		}
		if counted, ok := m.census.count(m.cluster, m.served()); ok {
			m.config.Counted(counted)
		}
		pause(ctx, m.config.Recount)
	}
}

// count is what is there now; ok is false while not all kinds have been listed: with less, what is taken would count as free.
func (c *census) count(cluster policies.ClusterName, pods servedPods) (f world.AcceleratorsCounted, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.listed) < len(censusKinds) {
		return f, false
	}
	accelerators := c.inventory.Count()
	f = world.AcceleratorsCounted{Cluster: cluster, Accelerators: &accelerators}
	room := c.inventory.Room()
	for _, s := range pods.services {
		r := world.PoolReplicas{Service: s.name, Holds: c.inventory.Holds(s.pods...)}
		if !pods.stale {
			r.Fit = room.More(s.pods...)
		}
		f.Pools = append(f.Pools, r)
	}
	return f, true
}

// servedPods are the pods of a cluster's pools.
type servedPods struct {
	// stale says that the cluster was heard too long ago for anybody to say what would fit now.
	stale    bool
	services []poolPods
}

// poolPods are the pods behind a pool's endpoints.
type poolPods struct {
	name policies.ServiceName
	pods []types.NamespacedName
}

// served are the pods of the pools that are known now, by service.
func (m *member) served() servedPods {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := servedPods{stale: m.stale}
	for key, from := range m.sources {
		of := objectOf(&from)
		pods, ok := m.pools.podsOf(of)
		if of.kind != policies.FromInferencePool {
			pods, ok = m.slices.podsOf(of), m.slices.listed
		}
		if ok {
			s.services = append(s.services, poolPods{key.Service, pods})
		}
	}
	slices.SortFunc(s.services, func(a, b poolPods) int { return cmp.Compare(a.name, b.name) })
	return s
}

// podsOf are the pods behind an object's endpoints.
func (s *sliceSet) podsOf(of object) (pods []types.NamespacedName) {
	for _, slice := range s.byOwner[of] {
		for i := range slice.endpoints {
			if pod := slice.endpoints[i].pod; pod != "" {
				pods = append(pods, types.NamespacedName{Namespace: of.namespace, Name: pod})
			}
		}
	}
	return pods
}

// podsOf are the pods of an InferencePool; ok is false while they are not known.
func (s *poolSet) podsOf(of object) (pods []types.NamespacedName, ok bool) {
	set, ok := s.pods[named{of.namespace, of.name}]
	if of.kind != policies.FromInferencePool || !ok {
		return nil, false
	}
	for name := range set.byName {
		pods = append(pods, types.NamespacedName{Namespace: name.namespace, Name: name.name})
	}
	return pods, true
}
