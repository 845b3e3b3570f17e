package plan_test

import (
	"fmt"
	"net/netip"

	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Sets made here are as Parse would make them, without the cost of YAML: for properties and benchmarks.

func region(name string, country geo.Country, latitude, longitude float64) policies.Region {
	point, err := geo.MakePoint(latitude, longitude)
	if err != nil {
		panic(err)
	}
	spec := policies.RegionSpec{Country: country, Place: geo.Place{Country: country, Point: point}}
	return policies.Region{Metadata: named(policies.RegionName(name)), Spec: spec}
}

func named[N ~string](name N) policies.Metadata[N] { return policies.Metadata[N]{Name: name} }

func cluster(name string, in policies.RegionName) policies.Cluster {
	return policies.Cluster{Metadata: named(policies.ClusterName(name)), Spec: policies.ClusterSpec{Region: in}}
}

// service has pools in clusters, given by their places in the set, with so many endpoints each.
func service(name string, number, endpoints int, clusters []policies.Cluster) policies.Service {
	s := policies.Service{Metadata: named(policies.ServiceName(name))}
	s.Spec.Capacity = policies.Capacity{Source: policies.CapacityVLLM, SlotsPerEndpoint: 8}
	for i, c := range clusters {
		pool := policies.Pool{Cluster: c.Metadata.Name}
		for e := range endpoints {
			pool.Endpoints = append(pool.Endpoints, policies.Address{Address: netip.AddrFrom4([4]byte{10, byte(i), byte(number), byte(e)}), Port: 8000})
		}
		s.Spec.Pools = append(s.Spec.Pools, pool)
	}
	return s
}

// gatewayEverywhere selects all gateways, with an identity for other clusters' gateways or without.
func gatewayEverywhere(eastWest bool) policies.Gateway {
	g := policies.Gateway{Metadata: named(policies.GatewayName("edge"))}
	g.Spec.Proxies.Roles = []policies.Role{policies.RoleGateway}
	if eastWest {
		g.Spec.EastWest = &policies.EastWest{Port: 9443}
	}
	return g
}

// fleet is a set of clusters in as many regions around the world, and services with so many pools each.
func fleet(clusters, services, pools int) *policies.Set {
	set := &policies.Set{Hash: fmt.Sprintf("%d clusters, %d services, %d pools", clusters, services, pools)}
	countries := []geo.Country{"DE", "FR", "US", "JP"}
	for i := range clusters {
		name := fmt.Sprintf("r%03d", i)
		set.Regions = append(set.Regions, region(name, countries[i%4], float64(i*37%120-60), float64(i*101%360-180)))
		set.Clusters = append(set.Clusters, cluster("c"+name[1:], policies.RegionName(name)))
	}
	for i := range services {
		var in []policies.Cluster
		for p := range clusters {
			if (p+i)%clusters < pools {
				in = append(in, set.Clusters[p])
			}
		}
		set.Services = append(set.Services, service(fmt.Sprintf("s%04d", i), i%256, 2, in))
	}
	set.Residencies = []policies.Residency{{Metadata: named(policies.ResidencyName("eu"))}}
	eu, _ := geo.Jurisdiction("EU")
	set.Residencies[0].Spec = policies.ResidencySpec{Match: policies.ResidencyMatch{Countries: []string{"EU"}, CountrySet: eu}, Within: []string{"EU"}, UnknownLocation: policies.UnknownRefuse}
	set.Gateways = []policies.Gateway{gatewayEverywhere(true)}
	return set
}

// opening is the facts with which a world of a set begins: every cluster's gateway is there, everything is healthy.
func opening(set *policies.Set) []world.Fact {
	facts := []world.Fact{world.TimeAdvanced{Now: start}, world.PoliciesLoaded{Set: set}}
	for _, c := range set.Clusters {
		facts = append(facts, world.ViewpointSeen{Viewpoint: viewpointOf(c)})
	}
	for _, s := range set.Services {
		for _, p := range s.Spec.Pools {
			for _, a := range p.Endpoints {
				key := world.EndpointKey{Pool: world.PoolKey{Service: s.Metadata.Name, Cluster: p.Cluster}, Address: a.AddrPort()}
				facts = append(facts, world.EndpointJudged{Endpoint: key, Health: world.Health{Verdict: world.Healthy}})
			}
		}
	}
	return facts
}

func viewpointOf(c policies.Cluster) world.Viewpoint {
	return world.Viewpoint{Role: policies.RoleGateway, Region: c.Spec.Region, Cluster: c.Metadata.Name}
}
