package xds

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// wire is a resource as responses carry it, serialised once. The entry of a delta response,
//
//	resources: {name, version, aliases, ttl, resource: {type_url, value}}
//
// ends with what is, byte for byte, the entry of a state-of-the-world response,
//
//	resources: {type_url, value}
//
// since both fields have number 2 (envoy/service/discovery/v3/discovery.proto); and that ends with the message itself.
type wire struct {
	bytes []byte // the entry of a delta response
	state int    // where the entry of a state-of-the-world response begins
	body  int    // where the message begins
}

// The fields of envoy.service.discovery.v3.Resource, of google.protobuf.Any, and the resources of both responses.
const (
	fieldVersion  protowire.Number = 1
	fieldResource protowire.Number = 2
	fieldName     protowire.Number = 3
	fieldAliases  protowire.Number = 4
	fieldTTL      protowire.Number = 6

	fieldTypeURL protowire.Number = 1
	fieldValue   protowire.Number = 2

	fieldResources protowire.Number = 2
)

// wrapped is the type by which a state-of-the-world response carries a resource with a TTL.
const wrapped = "type.googleapis.com/envoy.service.discovery.v3.Resource"

func newWire(r *Resource, message []byte) wire {
	head := about(r)
	content := sizeOf(fieldTypeURL, len(r.Type)) + sizeOf(fieldValue, len(message))
	entry := len(head) + sizeOf(fieldResource, content)
	w := wire{bytes: make([]byte, 0, sizeOf(fieldResources, entry))}
	w.bytes = appendLength(w.bytes, fieldResources, entry)
	w.bytes = append(w.bytes, head...)
	w.state = len(w.bytes)
	w.bytes = appendLength(w.bytes, fieldResource, content)
	w.bytes = appendString(w.bytes, fieldTypeURL, string(r.Type))
	w.bytes = appendLength(w.bytes, fieldValue, len(message))
	w.body = len(w.bytes)
	w.bytes = append(w.bytes, message...)
	return w
}

// about is what a discovery.v3.Resource says besides the message.
func about(r *Resource) []byte {
	b := appendString(nil, fieldName, r.Name)
	b = appendString(b, fieldVersion, r.Version)
	for _, alias := range r.Aliases {
		b = appendString(b, fieldAliases, alias)
	}
	if r.TTL > 0 {
		b = protowire.AppendTag(b, fieldTTL, protowire.BytesType)
		b = protowire.AppendBytes(b, durationBytes(r.TTL))
	}
	return b
}

// durationBytes is a google.protobuf.Duration.
func durationBytes(d time.Duration) []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(d/time.Second))
	return protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), uint64(d%time.Second))
}

func (w wire) value() []byte { return w.bytes[w.body:len(w.bytes):len(w.bytes)] }

// DeltaEntry is the resource as an entry of DeltaDiscoveryResponse.resources, with its tag. It must not be changed.
func (r *Resource) DeltaEntry() []byte { return r.wire.bytes }

// StateEntry is the resource as an entry of DiscoveryResponse.resources, with its tag. It must not be changed.
func (r *Resource) StateEntry() []byte { return r.wire.bytes[r.wire.state:] }

// WrappedEntry is the resource with its TTL, as an entry of DiscoveryResponse.resources for a client that understands it.
func (r *Resource) WrappedEntry() []byte {
	_, _, n := protowire.ConsumeTag(r.wire.bytes)
	_, m := protowire.ConsumeVarint(r.wire.bytes[n:])
	return wrap(r.wire.bytes[n+m:])
}

// DeltaHeartbeat is an entry that renews the TTL of a resource which the client holds, without the resource.
func (r *Resource) DeltaHeartbeat() []byte {
	head := about(r)
	return append(appendLength(nil, fieldResources, len(head)), head...)
}

// StateHeartbeat is DeltaHeartbeat for the state of the world.
func (r *Resource) StateHeartbeat() []byte { return wrap(about(r)) }

// wrap makes an entry of DiscoveryResponse.resources of a discovery.v3.Resource.
func wrap(resource []byte) []byte {
	b := appendLength(nil, fieldResources, sizeOf(fieldTypeURL, len(wrapped))+sizeOf(fieldValue, len(resource)))
	b = appendString(b, fieldTypeURL, wrapped)
	return append(appendLength(b, fieldValue, len(resource)), resource...)
}

// sizeOf is the size of a field with so many bytes in it.
func sizeOf(field protowire.Number, length int) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(length)
}

//nolint:unparam // that all these fields have the number 2 is chance
func appendLength(b []byte, field protowire.Number, length int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(length))
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}
