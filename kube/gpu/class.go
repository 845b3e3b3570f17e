package gpu

import "strings"

// Class is how a node was bought, which says how long it may be counted on.
type Class string

// The classes.
const (
	// Spot nodes can be taken away at any time.
	Spot Class = "spot"
	// OnDemand nodes stay as long as they are paid for.
	OnDemand Class = "on-demand"
	// Reserved nodes are paid for whether they are used or not.
	Reserved Class = "reserved"
	// Unknown is what no label says, as on machines of one's own.
	Unknown Class = "unknown"
)

// classLabels say by label and value what class a node is of; the first that does counts. Values are compared in lower case and with
// hyphens.
var classLabels = []struct {
	key    string
	values map[string]Class
}{
	{"karpenter.sh/capacity-type", map[string]Class{"spot": Spot, "on-demand": OnDemand, "reserved": Reserved}},
	{"eks.amazonaws.com/capacityType", map[string]Class{"spot": Spot, "on-demand": OnDemand, "capacity-block": Reserved}},
	{"cloud.google.com/gke-spot", map[string]Class{"true": Spot}},
	{"cloud.google.com/gke-preemptible", map[string]Class{"true": Spot}},
	{"cloud.google.com/gke-provisioning", map[string]Class{"spot": Spot, "preemptible": Spot, "standard": OnDemand}},
	{"kubernetes.azure.com/scalesetpriority", map[string]Class{"spot": Spot, "regular": OnDemand}},
	{"node.kubernetes.io/lifecycle", map[string]Class{"spot": Spot, "preemptible": Spot, "normal": OnDemand, "on-demand": OnDemand}},
}

func classOf(labels labelSet) Class {
	for _, l := range classLabels {
		value := strings.ReplaceAll(strings.ToLower(labels.Get(l.key)), "_", "-")
		if class, ok := l.values[value]; ok {
			return class
		}
	}
	return Unknown
}
