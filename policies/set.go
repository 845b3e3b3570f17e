package policies

import (
	"cmp"
	"sort"
)

// Set is every policy object of one folder, valid as a whole. It is immutable: every slice is sorted by name, every
// default is filled in, every reference resolves. Make one with Parse.
type Set struct {
	Regions     []Region
	Clusters    []Cluster
	Services    []Service
	Residencies []Residency
	Traffics    []Traffic
	Gateways    []Gateway

	// Hash identifies the content: equal for equal objects whatever files they came from.
	Hash string
}

// Region finds a region by name.
func (s *Set) Region(name RegionName) (*Region, bool) {
	return find(s.Regions, name, func(r *Region) RegionName { return r.Metadata.Name })
}

// Cluster finds a cluster by name.
func (s *Set) Cluster(name ClusterName) (*Cluster, bool) {
	return find(s.Clusters, name, func(c *Cluster) ClusterName { return c.Metadata.Name })
}

// Service finds a service by name.
func (s *Set) Service(name ServiceName) (*Service, bool) {
	return find(s.Services, name, func(v *Service) ServiceName { return v.Metadata.Name })
}

// Residency finds a residency rule by name.
func (s *Set) Residency(name ResidencyName) (*Residency, bool) {
	return find(s.Residencies, name, func(r *Residency) ResidencyName { return r.Metadata.Name })
}

// find searches a slice sorted by name and points into it.
func find[T any, N cmp.Ordered](sorted []T, name N, nameOf func(*T) N) (*T, bool) {
	// By index: slices.BinarySearchFunc would copy each value that it looks at, to the heap.
	i, ok := sort.Find(len(sorted), func(i int) int { return cmp.Compare(name, nameOf(&sorted[i])) })
	if !ok {
		return nil, false
	}
	return &sorted[i], true
}
