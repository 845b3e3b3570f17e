package world

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meridian-mesh/meridian/policies"
)

// ViewpointID is the canonical text of a Viewpoint: see Viewpoint.ID.
type ViewpointID string

// Dialect is how a proxy wants its configuration worded: what it is and, where that matters, how old.
type Dialect string

// The dialects.
const (
	// DialectEnvoy is every Envoy from 1.37 on, and whoever does not say what it is.
	DialectEnvoy Dialect = ""
	// DialectEnvoy136 is Envoy up to 1.36, which lacks fields that newer ones are given.
	DialectEnvoy136 Dialect = "envoy-1.36"
	// DialectGRPC is a gRPC client that routes by itself, without a proxy.
	DialectGRPC Dialect = "grpc"
)

// Viewpoint is what a group of proxies shares: proxies with equal viewpoints get the same configuration.
type Viewpoint struct {
	Role    policies.Role
	Region  policies.RegionName
	Cluster policies.ClusterName
	Dialect Dialect
	Tenants Tenants
}

// ID is the viewpoint's canonical text: role/region/cluster, then "/" and the dialect where it is not DialectEnvoy, then
// "@" and the tenants where they are not AllTenants.
func (v Viewpoint) ID() ViewpointID {
	id := string(v.Role) + "/" + string(v.Region) + "/" + string(v.Cluster)
	if v.Dialect != DialectEnvoy {
		id += "/" + string(v.Dialect)
	}
	if v.Tenants != AllTenants {
		id += "@" + string(v.Tenants)
	}
	return ViewpointID(id)
}

// ParseViewpoint reads the text that ID writes. The error says what is wrong with it.
func ParseViewpoint(id ViewpointID) (Viewpoint, error) {
	place, tenants, some := strings.Cut(string(id), "@")
	parts := strings.Split(place, "/")
	if len(parts) < 3 || len(parts) > 4 || slices.Contains(parts, "") {
		return Viewpoint{}, fmt.Errorf("viewpoint %q is not of the form role/region/cluster[/dialect][@tenant+tenant]", id)
	}
	v := Viewpoint{Role: policies.Role(parts[0]), Region: policies.RegionName(parts[1]), Cluster: policies.ClusterName(parts[2]), Tenants: Tenants(tenants)}
	if some && !v.Tenants.canonical() {
		return Viewpoint{}, fmt.Errorf("viewpoint %q: the tenants behind @ are not sorted, distinct, and escaped as they are written", id)
	}
	if len(parts) == 4 {
		v.Dialect = Dialect(parts[3])
	}
	if v.Dialect != DialectEnvoy && v.Dialect != DialectEnvoy136 && v.Dialect != DialectGRPC {
		return Viewpoint{}, fmt.Errorf("viewpoint %q: dialect %q is none of %s, %s", id, v.Dialect, DialectEnvoy136, DialectGRPC)
	}
	return v, nil
}
