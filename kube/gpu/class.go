package gpu

import (
	"strings"

	"github.com/meridian-mesh/meridian/world"
)

// classLabels say by label and value what class a node is of; the first that does counts. Values are compared in lower case and with
// hyphens.
var classLabels = []struct {
	key    string
	values map[string]world.CapacityClass
}{
	{"karpenter.sh/capacity-type", map[string]world.CapacityClass{"spot": world.Spot, "on-demand": world.OnDemand, "reserved": world.Reserved}},
	{"eks.amazonaws.com/capacityType", map[string]world.CapacityClass{"spot": world.Spot, "on-demand": world.OnDemand, "capacity-block": world.Reserved}},
	{"cloud.google.com/gke-spot", map[string]world.CapacityClass{"true": world.Spot}},
	{"cloud.google.com/gke-preemptible", map[string]world.CapacityClass{"true": world.Spot}},
	{"cloud.google.com/gke-provisioning", map[string]world.CapacityClass{"spot": world.Spot, "preemptible": world.Spot, "standard": world.OnDemand}},
	{"kubernetes.azure.com/scalesetpriority", map[string]world.CapacityClass{"spot": world.Spot, "regular": world.OnDemand}},
	{"node.kubernetes.io/lifecycle", map[string]world.CapacityClass{"spot": world.Spot, "preemptible": world.Spot, "normal": world.OnDemand, "on-demand": world.OnDemand}},
}

func classOf(labels labelSet) world.CapacityClass {
	for _, l := range classLabels {
		value := strings.ReplaceAll(strings.ToLower(labels.Get(l.key)), "_", "-")
		if class, ok := l.values[value]; ok {
			return class
		}
	}
	return world.Unclassed
}
