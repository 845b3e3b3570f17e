package gpu

import (
	"encoding/json"
	"slices"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	podresource "k8s.io/component-helpers/resource"

	"github.com/go-logr/logr"
)

// Shape is what one replica asks of a node.
type Shape struct {
	asks        []amount
	devices     []request
	cpu         int64 // in thousandths
	memory      int64 // in bytes
	selects     labels.Selector
	affinity    *selector // nil for any node
	tolerations []core.Toleration
	key         text // equal for equal shapes
}

// ShapeOf reads what pods of a spec ask for. Claims are the specs of the resource claims that it refers to, of their templates mostly.
// Take the spec of a pod where there is one: admission may have given it tolerations that its template does not have.
func ShapeOf(spec *core.PodSpec, s Settings, claims ...*resource.ResourceClaimSpec) Shape {
	requests := podresource.PodRequests(&core.Pod{Spec: *spec}, podresource.PodResourcesOptions{})
	shape := Shape{
		asks: s.devicesIn(requests), cpu: milliOf(requests.Cpu()), memory: valueOf(*requests.Memory()),
		selects: labels.SelectorFromSet(spec.NodeSelector), tolerations: spec.Tolerations,
	}
	var required *core.NodeSelector
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		required = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if required != nil {
		affinity := selectorOf(required)
		shape.affinity = &affinity
	}
	for _, c := range claims {
		shape.devices = append(shape.devices, s.requestsOf(&c.Devices)...)
	}
	shape.key = keyOf(keyed(shape.asks), shape.cpu, shape.memory, spec.NodeSelector, required, spec.Tolerations, keysOf(shape.devices))
	return shape
}

// keyOf makes one text of values that encode as JSON, the same for the same values.
func keyOf(parts ...any) text {
	key, err := json.Marshal(parts)
	if err != nil {
		return text{} // values of the API's types always encode
	}
	return textOf(string(key))
}

// keyed are amounts as values that encode.
func keyed(all []amount) (key []any) {
	for _, a := range all {
		key = append(key, a.of.String(), a.n)
	}
	return key
}

// nothing tells whether a shape asks for no accelerator at all.
func (s *Shape) nothing() bool { return len(s.asks)+len(s.devices) == 0 }

// may tells whether the replica may run on a node, whatever is free there.
func (s *Shape) may(name string, n *Node) bool {
	return n.up && s.selects.Matches(n.labels) && (s.affinity == nil || s.affinity.matches(name, n.labels)) &&
		!slices.ContainsFunc(n.taints, func(t core.Taint) bool { return !s.tolerates(&t) })
}

func (s *Shape) tolerates(t *core.Taint) bool {
	return slices.ContainsFunc(s.tolerations, func(have core.Toleration) bool { return have.ToleratesTaint(logr.Discard(), t, true) })
}
