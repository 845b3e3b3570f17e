package kube

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/policies"
)

// ClusterStatus is how well a member cluster is read.
type ClusterStatus struct {
	Cluster policies.ClusterName `json:"cluster"`
	// Heard is when its API server last answered; zero when it never did.
	Heard time.Time `json:"heard,omitzero"`
	// Stale says that this is too long ago for what it said of readiness to count.
	Stale bool `json:"stale,omitempty"`
	// Problems say why something can't be read, sorted; none where all can.
	Problems []string `json:"problems,omitempty"`
}

// Status is how well each member cluster is read, sorted by name.
func (w *Watcher) Status() []ClusterStatus {
	w.mu.Lock()
	members := slices.Collect(maps.Values(w.members))
	w.mu.Unlock()
	all := make([]ClusterStatus, 0, len(members))
	for _, r := range members {
		all = append(all, r.status())
	}
	slices.SortFunc(all, func(a, b ClusterStatus) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return all
}

func (m *member) status() ClusterStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := ClusterStatus{Cluster: m.cluster, Heard: m.heard, Stale: m.stale}
	for what, err := range m.failing {
		s.Problems = append(s.Problems, what+": "+err.Error())
	}
	slices.Sort(s.Problems)
	return s
}
