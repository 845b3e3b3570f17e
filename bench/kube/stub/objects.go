package stub

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// fill makes the collections.
func (c *Cluster) fill() {
	s := c.shape
	c.collections = map[string]*collection{}
	add := func(k kind, count int, of func(i int) object) *collection {
		made := newCollection(k, count, of)
		c.collections[k.group+"/"+k.version+"/"+k.resource] = made
		return made
	}
	none := func(int) object { return nil }
	add(kind{"", "v1", "namespaces", "Namespace", false}, min(s.Services, 10), namespaceMaker())
	add(kind{"", "v1", "nodes", "Node", false}, s.Nodes, s.nodeMaker())
	add(kind{"", "v1", "services", "Service", true}, s.Services, s.serviceMaker())
	c.pods = add(kind{"", "v1", "pods", "Pod", true}, s.Pods, s.podMaker())
	c.slices = add(kind{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true}, s.Services, s.sliceMaker())
	add(kind{"inference.networking.k8s.io", "v1", "inferencepools", "InferencePool", true}, s.Services, poolMaker())
	add(kind{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false}, 0, none)
	add(kind{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true}, 0, none)
}

// born is when everything was made.
var born = meta.NewTime(time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC))

// uid is an object's, from what it is and its number.
func uid(what byte, cluster, i int) types.UID {
	return types.UID(fmt.Sprintf("%02x%06x-7c1e-4f0a-9b6d-%04x%08x", what, i, cluster, i))
}

// written is a managedFields entry for some fields of an object, as the API server keeps it of each that writes.
func written(by, subresource string, parts any) meta.ManagedFieldsEntry {
	return meta.ManagedFieldsEntry{
		Manager: by, Operation: meta.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &born, FieldsType: "FieldsV1", Subresource: subresource,
		FieldsV1: meta.NewFieldsV1(string(fieldsV1(parts))),
	}
}

// fieldsV1 names all fields of a value in the form of managedFields: f: before a field, k: with the name before an item.
func fieldsV1(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var plain any
	if json.Unmarshal(text, &plain) != nil {
		return nil
	}
	named, _ := json.Marshal(namesOf(plain)) // maps of maps
	return named
}

func namesOf(v any) map[string]any {
	names := map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		for k, field := range v {
			names["f:"+k] = namesOf(field)
		}
	case []any:
		for i, item := range v {
			key := fmt.Sprintf("v:%d", i)
			if m, ok := item.(map[string]any); ok {
				key = keyOf(m)
			}
			names[key] = namesOf(item)
		}
	}
	return names
}

// keyOf is an item's by its name or its type.
func keyOf(m map[string]any) string {
	for _, field := range []string{"name", "type", "ip", "mountPath"} {
		if value, ok := m[field].(string); ok {
			return fmt.Sprintf("k:{%q:%q}", field, value)
		}
	}
	return "k:{}"
}

func namespaceMaker() func(int) object {
	return func(i int) object {
		return &core.Namespace{
			TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: meta.ObjectMeta{Name: Namespace(i), UID: uid('a', 0, i), ResourceVersion: versionText(firstVersion), CreationTimestamp: born, Labels: map[string]string{"kubernetes.io/metadata.name": Namespace(i)}},
			Status:     core.NamespaceStatus{Phase: core.NamespaceActive},
		}
	}
}

// poolMaker makes an InferencePool for each service.
func poolMaker() func(int) object {
	return func(i int) object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool",
			"metadata": map[string]any{"namespace": Namespace(i), "name": ServiceName(i), "uid": string(uid('b', 0, i)), "resourceVersion": versionText(firstVersion)},
			"spec": map[string]any{
				"selector":    map[string]any{"matchLabels": map[string]any{"app.kubernetes.io/instance": ServiceName(i)}},
				"targetPorts": []any{map[string]any{"number": int64(8000)}},
			},
		}}
	}
}

// hex is text of a length that looks like a digest, the same for the same seed.
func hex(seed, length int) string {
	return strings.Repeat(fmt.Sprintf("%016x", uint64(seed+1)*0x9e3779b97f4a7c15), length/16+1)[:length]
}
