package serve

import (
	"errors"
	"fmt"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// MetadataRole is the key in a node's metadata that says the proxy's role: "gateway" (the default) or "sidecar".
const MetadataRole = "meridian.dev/role"

// MetadataTenants is the key in a node's metadata that lists the tenants that the proxy serves. Without it, it serves all.
const MetadataTenants = "meridian.dev/tenants"

// tenantsOf are the tenants that a node lists.
func tenantsOf(node *core.Node) (world.Tenants, error) {
	v, ok := node.GetMetadata().GetFields()[MetadataTenants]
	if !ok {
		return world.AllTenants, nil
	}
	if v.GetListValue() == nil || len(v.GetListValue().GetValues()) == 0 {
		return "", errors.New("want a list of tenants' names; leave it out to serve all")
	}
	var names []policies.Tenant
	for _, item := range v.GetListValue().GetValues() {
		names = append(names, policies.Tenant(item.GetStringValue()))
	}
	return world.MakeTenants(names)
}

// Viewpoint reads the viewpoint that a node claims: node.cluster names the Cluster that the proxy is in,
// node.locality.region its Region (which may be left out), metadata "meridian.dev/role" its role and "meridian.dev/tenants" whom it serves. regionOf looks up the
// region of a cluster in the policies in force. The error has a gRPC status: InvalidArgument for a node that says
// something wrong, NotFound for a cluster that no policy names (yet). What the node says it is and how old decides the
// dialect.
func Viewpoint(node *core.Node, regionOf func(policies.ClusterName) (policies.RegionName, bool)) (world.Viewpoint, error) {
	if node.GetId() == "" {
		return world.Viewpoint{}, status.Error(codes.InvalidArgument, "node.id is empty: give each proxy an id of its own")
	}
	role := policies.Role(node.GetMetadata().GetFields()[MetadataRole].GetStringValue())
	switch role {
	case "":
		role = policies.RoleGateway
	case policies.RoleGateway, policies.RoleSidecar:
	default:
		return world.Viewpoint{}, status.Errorf(codes.InvalidArgument, "node %s: metadata %s is %s, want gateway or sidecar", clip(node.GetId()), MetadataRole, clip(string(role)))
	}
	tenants, err := tenantsOf(node)
	if err != nil {
		return world.Viewpoint{}, status.Errorf(codes.InvalidArgument, "node %s: metadata %s: %s", clip(node.GetId()), MetadataTenants, err.Error())
	}
	cluster := policies.ClusterName(node.GetCluster())
	region, ok := regionOf(cluster)
	if !ok {
		return world.Viewpoint{}, status.Errorf(codes.NotFound, "node %s: node.cluster is %s, and no Cluster policy has that name", clip(node.GetId()), clip(string(cluster)))
	}
	if claimed := node.GetLocality().GetRegion(); claimed != "" && claimed != string(region) {
		return world.Viewpoint{}, status.Errorf(codes.InvalidArgument, "node %s: node.locality.region is %s, but cluster %s is in region %s", clip(node.GetId()), clip(claimed), cluster, region)
	}
	return world.Viewpoint{Role: role, Region: region, Cluster: cluster, Dialect: dialectOf(node), Tenants: tenants}, nil
}

// dialectOf goes by user_agent_name, which is "envoy" or such as "gRPC Go", and by Envoy's build version.
func dialectOf(node *core.Node) world.Dialect {
	if strings.HasPrefix(node.GetUserAgentName(), "gRPC") {
		return world.DialectGRPC
	}
	v := node.GetUserAgentBuildVersion().GetVersion()
	if node.GetUserAgentName() == "envoy" && v != nil && v.GetMajorNumber() == 1 && v.GetMinorNumber() <= 36 {
		return world.DialectEnvoy136
	}
	return world.DialectEnvoy
}

// clip quotes what a client said of itself, bounded, for messages.
func clip(s string) string {
	const most = 128
	if len(s) > most {
		s = s[:most]
	}
	return fmt.Sprintf("%q", s)
}
