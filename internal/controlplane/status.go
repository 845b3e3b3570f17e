package controlplane

import (
	"maps"
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/internal/pipeline"
	"github.com/meridian-mesh/meridian/kube"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/serve"
)

// Status is what an operator asks first: what is in force, who has it, who refused it, and how much room there is.
type Status struct {
	Policies PolicyStatus        `json:"policies"`
	Proxies  []serve.ProxyStatus `json:"proxies"`
	Refused  []RefusedStatus     `json:"refused,omitempty"`
	Stale    []StaleStatus       `json:"stale,omitempty"`
	// Quarantined are viewpoints whose newest configuration is not served because a proxy refused it.
	Quarantined []QuarantineStatus `json:"quarantined,omitempty"`
	// Retiring are clusters that the folder names no more, and that still serve what was under way.
	Retiring []RetiringStatus `json:"retiring,omitempty"`
	// Clusters are those that are read from their API servers.
	Clusters []kube.ClusterStatus `json:"clusters,omitempty"`
	// Accelerators are those of the clusters in which they were counted, sorted by cluster.
	Accelerators []AcceleratorStatus `json:"accelerators,omitempty"`
	Pools        []PoolStatus        `json:"pools"`
	Since        time.Time           `json:"since"`
}

// PolicyStatus is the policy set in force, and why the folder's content is not, where it is not.
type PolicyStatus struct {
	Hash   string    `json:"hash,omitempty"`
	Loaded time.Time `json:"loaded,omitzero"`
	Error  string    `json:"error,omitempty"`
}

// RefusedStatus is a viewpoint whose newest configuration verify holds back; the last good one stays in force.
type RefusedStatus struct {
	Viewpoint  world.ViewpointID `json:"viewpoint"`
	Violations []string          `json:"violations"`
}

// QuarantineStatus is a viewpoint whose newest configuration is not served, because a proxy refused it: its proxies keep the
// structure of the last good one, and endpoints go on to change.
type QuarantineStatus struct {
	Viewpoint world.ViewpointID `json:"viewpoint"`
	// Proxy refused it, for this Reason.
	Proxy  string    `json:"proxy"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Resources are the first few of what it refused, with their types.
	Resources []string `json:"resources,omitempty"`
}

func quarantineOf(v world.ViewpointID, r pipeline.Refusal) QuarantineStatus {
	q := QuarantineStatus{Viewpoint: v, Proxy: r.Proxy, Reason: r.Reason, At: r.At}
	for _, bad := range r.Refused[:min(len(r.Refused), 8)] {
		q.Resources = append(q.Resources, bad.Type.Short()+" "+bad.Name)
	}
	return q
}

// RetiringStatus is a cluster that the folder names no more.
type RetiringStatus struct {
	Cluster policies.ClusterName `json:"cluster"`
	// InFlight is how many requests are under way there, as proxies report.
	InFlight float64 `json:"inFlight"`
}

func retiringOf(w *world.World, cluster policies.ClusterName) RetiringStatus {
	r := RetiringStatus{Cluster: cluster}
	for i := range w.Policies().Services {
		for _, part := range w.DemandParts(w.Policies().Services[i].Metadata.Name) {
			if part.Cluster == cluster {
				r.InFlight += part.Demand.InFlight
			}
		}
	}
	return r
}

// PoolStatus is one service's servers in one cluster.
type PoolStatus struct {
	Service   policies.ServiceName `json:"service"`
	Cluster   policies.ClusterName `json:"cluster"`
	Region    policies.RegionName  `json:"region"`
	Endpoints int                  `json:"endpoints"`
	Healthy   int                  `json:"healthy"`
	Unknown   int                  `json:"unknown"`
	Slots     int                  `json:"slots"`
	Free      int                  `json:"free"`
	// Replicas is what the servers hold of accelerators, and how many more of them would fit; left out where that is not known.
	Replicas *world.PoolReplicas `json:"replicas,omitempty"`
}

// AcceleratorStatus is what a cluster has of accelerators.
type AcceleratorStatus struct {
	Cluster policies.ClusterName `json:"cluster"`
	world.Accelerators
}

// acceleratorsIn are those of all clusters in which they were counted.
func acceleratorsIn(w *world.World) (all []AcceleratorStatus) {
	for i := range w.Policies().Clusters {
		cluster := w.Policies().Clusters[i].Metadata.Name
		if a := w.Accelerators(cluster); a != nil {
			all = append(all, AcceleratorStatus{cluster, *a})
		}
	}
	return all
}

// Status is the picture of now.
func (p *Plane) Status() Status {
	state, folder := p.State(), p.folder.Status()
	out := Status{Proxies: p.Proxies(), Stale: p.stale(), Clusters: p.kube.Status(), Pools: []PoolStatus{}, Since: p.started}
	if set := state.World.Policies(); set != nil {
		out.Policies.Hash, out.Policies.Loaded = set.Hash, folder.Loaded
		if len(state.Retiring) > 0 && folder.Set != nil {
			out.Policies.Hash = folder.Set.Hash // in force is that, and what retires
		}
		for _, c := range state.Retiring {
			out.Retiring = append(out.Retiring, retiringOf(state.World, c))
		}
		out.Accelerators = acceleratorsIn(state.World)
	}
	if folder.Err != nil {
		out.Policies.Error = folder.Err.Error()
	}
	for _, viewpoint := range slices.Sorted(maps.Keys(state.Refused)) {
		refused := RefusedStatus{Viewpoint: viewpoint}
		for _, v := range state.Refused[viewpoint] {
			refused.Violations = append(refused.Violations, v.String())
		}
		out.Refused = append(out.Refused, refused)
	}
	for _, viewpoint := range slices.Sorted(maps.Keys(state.Withheld)) {
		out.Quarantined = append(out.Quarantined, quarantineOf(viewpoint, state.Withheld[viewpoint]))
	}
	for _, pool := range state.World.Pools() {
		service, ok := state.World.Policies().Service(pool.Key.Service)
		if !ok {
			continue
		}
		h := pool.Headroom(service.Spec.Capacity)
		region, _ := state.World.RegionOf(pool.Key.Cluster)
		out.Pools = append(out.Pools, PoolStatus{pool.Key.Service, pool.Key.Cluster, region, h.Total, h.Healthy, h.Unknown, h.Slots, h.Free, pool.Replicas})
	}
	return out
}
