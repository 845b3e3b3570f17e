package world

import (
	"fmt"
	"strings"

	"github.com/meridian-mesh/meridian/policies"
)

// ViewpointID is the canonical text of a Viewpoint: "role/region/cluster".
type ViewpointID string

// Viewpoint is what a group of proxies shares: proxies with equal viewpoints get the same configuration.
type Viewpoint struct {
	Role    policies.Role
	Region  policies.RegionName
	Cluster policies.ClusterName
}

// ID is the viewpoint's canonical text.
func (v Viewpoint) ID() ViewpointID {
	return ViewpointID(string(v.Role) + "/" + string(v.Region) + "/" + string(v.Cluster))
}

// ParseViewpoint reads the text that ID writes. The error says what is wrong with it.
func ParseViewpoint(id ViewpointID) (Viewpoint, error) {
	parts := strings.Split(string(id), "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return Viewpoint{}, fmt.Errorf("viewpoint %q is not of the form role/region/cluster", id)
	}
	return Viewpoint{policies.Role(parts[0]), policies.RegionName(parts[1]), policies.ClusterName(parts[2])}, nil
}
