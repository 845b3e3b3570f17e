package world_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// start is when the tests' worlds begin.
var start = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// setOf makes a set out of pools written "service@cluster: n endpoints"; a cluster "fra-1" is in the region "fra".
func setOf(hash string, pools map[string]int, rules ...policies.ResidencyName) *policies.Set {
	set := &policies.Set{Hash: hash}
	for _, rule := range rules {
		set.Residencies = append(set.Residencies, policies.Residency{Metadata: policies.Metadata[policies.ResidencyName]{Name: rule}})
	}
	names := make([]string, 0, len(pools))
	for name := range pools {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		service, cluster, _ := strings.Cut(name, "@")
		addCluster(set, policies.ClusterName(cluster))
		addPool(set, policies.ServiceName(service), policies.ClusterName(cluster), pools[name])
	}
	sortByName(set)
	return set
}

func addCluster(set *policies.Set, name policies.ClusterName) {
	region := regionIn(name)
	if !slices.ContainsFunc(set.Clusters, func(c policies.Cluster) bool { return c.Metadata.Name == name }) {
		set.Clusters = append(set.Clusters, policies.Cluster{
			Metadata: policies.Metadata[policies.ClusterName]{Name: name}, Spec: policies.ClusterSpec{Region: region},
		})
	}
	if !slices.ContainsFunc(set.Regions, func(r policies.Region) bool { return r.Metadata.Name == region }) {
		point, _ := geo.MakePoint(50, float64(len(set.Regions)))
		set.Regions = append(set.Regions, policies.Region{
			Metadata: policies.Metadata[policies.RegionName]{Name: region},
			Spec:     policies.RegionSpec{Place: geo.Place{Point: point}},
		})
	}
}

func regionIn(cluster policies.ClusterName) policies.RegionName {
	region, _, _ := strings.Cut(string(cluster), "-")
	return policies.RegionName(region)
}

func addPool(set *policies.Set, service policies.ServiceName, cluster policies.ClusterName, n int) {
	pool := policies.Pool{Cluster: cluster}
	for i := range n {
		a := addressOf(i)
		pool.Endpoints = append(pool.Endpoints, policies.Address{Address: a.Addr(), Port: a.Port()})
	}
	i := slices.IndexFunc(set.Services, func(s policies.Service) bool { return s.Metadata.Name == service })
	if i < 0 {
		i = len(set.Services)
		set.Services = append(set.Services, policies.Service{Metadata: policies.Metadata[policies.ServiceName]{Name: service}})
	}
	set.Services[i].Spec.Pools = append(set.Services[i].Spec.Pools, pool)
}

func sortByName(set *policies.Set) {
	slices.SortFunc(set.Regions, func(a, b policies.Region) int {
		return strings.Compare(string(a.Metadata.Name), string(b.Metadata.Name))
	})
	slices.SortFunc(set.Clusters, func(a, b policies.Cluster) int {
		return strings.Compare(string(a.Metadata.Name), string(b.Metadata.Name))
	})
	slices.SortFunc(set.Services, func(a, b policies.Service) int {
		return strings.Compare(string(a.Metadata.Name), string(b.Metadata.Name))
	})
}

// addressOf is the address of the i-th endpoint of every pool.
func addressOf(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 8000)
}

// endpoint is the i-th endpoint of the pool "service@cluster".
func endpoint(pool string, i int) world.EndpointKey {
	return world.EndpointKey{Pool: poolKey(pool), Address: addressOf(i)}
}

func poolKey(pool string) world.PoolKey {
	service, cluster, _ := strings.Cut(pool, "@")
	return world.PoolKey{Service: policies.ServiceName(service), Cluster: policies.ClusterName(cluster)}
}

// judged says that the i-th endpoint of a pool has a verdict.
func judged(pool string, i int, v world.Verdict) world.Fact {
	return world.EndpointJudged{Endpoint: endpoint(pool, i), Health: world.Health{Verdict: v}}
}

// demandKey is of the requests for a service in class "any" that enter at gateway/fra/fra-1.
func demandKey(service policies.ServiceName) world.DemandKey {
	return world.DemandKey{Viewpoint: "gateway/fra/fra-1", Service: service, Class: world.AnyClass}
}

// describe writes all that a world holds, so that tests can compare worlds by value.
func describe(w *world.World) string {
	var b strings.Builder
	fmt.Fprintln(&b, "now", w.Now())
	if w.Policies() == nil {
		return b.String()
	}
	fmt.Fprintln(&b, "set", w.Policies().Hash, "viewpoints", w.Viewpoints())
	for _, p := range w.Pools() {
		fmt.Fprintln(&b, "pool", p.Key, p.ServedAt, p.Endpoints, p.Replicas)
	}
	for _, c := range w.Policies().Clusters {
		fmt.Fprintln(&b, "accelerators", c.Metadata.Name, w.Accelerators(c.Metadata.Name))
	}
	for _, s := range w.Policies().Services {
		fmt.Fprintln(&b, "demand", w.DemandFor(s.Metadata.Name), "parts", w.DemandParts(s.Metadata.Name))
		for _, d := range w.DemandFor(s.Metadata.Name) {
			shares, ok := w.SharesInForce(d.Key)
			fmt.Fprintln(&b, "shares", d.Key, shares, ok)
		}
	}
	for _, from := range w.Policies().Regions {
		for _, to := range w.Policies().Regions {
			rtt, measured, ok := w.RoundTrip(from.Metadata.Name, to.Metadata.Name)
			fmt.Fprintln(&b, "rtt", from.Metadata.Name, to.Metadata.Name, rtt, measured, ok)
		}
	}
	return b.String()
}
