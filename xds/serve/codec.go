package serve

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that everything else goes through
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// frame is a response that is serialised already: a short head that is the stream's own, and entries that all streams share.
type frame mem.BufferSlice

// message is a request as it came. Its bytes are valid until the next is received.
type message struct{ bytes []byte }

// codec passes frames and messages on as they are, and everything else through protobuf. It takes the place of "proto", by
// which name clients ask for it.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal gives the buffers of a frame, without copying them.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(frame); ok {
		return mem.BufferSlice(f), nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal copies the bytes of a message.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*message); ok {
		m.bytes = grow(m.bytes, data.Len())
		data.CopyTo(m.bytes)
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

// keptMessage is how large a buffer a stream keeps for its next request: an acknowledgement has a hundred bytes or so, and
// what is larger comes seldom, or from few.
const keptMessage = 256

func grow(b []byte, n int) []byte {
	if cap(b) >= n {
		return b[:n]
	}
	return make([]byte, n, max(n, keptMessage))
}

// shrink lets go of a buffer that is not worth keeping.
func (m *message) shrink() {
	if cap(m.bytes) > keptMessage {
		m.bytes = nil
	}
}

// The fields of both responses, which differ in one (envoy/service/discovery/v3/discovery.proto).
const (
	fieldVersion      protowire.Number = 1
	fieldResources    protowire.Number = 2
	fieldType         protowire.Number = 4
	fieldNonce        protowire.Number = 5
	fieldRemoved      protowire.Number = 6 // delta
	fieldStateOrigin  protowire.Number = 6 // control_plane, state of the world
	fieldDeltaOrigin  protowire.Number = 7 // control_plane, delta
	fieldResourceName protowire.Number = 3
	fieldAliases      protowire.Number = 4
)

// encode makes a frame of a response; origin names this replica. size counts the bytes of its resources.
func (r *response) encode(full, lifetimes bool, origin string) (f frame, size int) {
	head := appendText(nil, fieldVersion, r.version)
	head = appendText(head, fieldType, string(r.typ))
	head = appendText(head, fieldNonce, r.nonce)
	field := fieldDeltaOrigin
	if full {
		field = fieldStateOrigin
	}
	head = protowire.AppendTag(head, field, protowire.BytesType)
	head = protowire.AppendBytes(head, appendText(nil, 1, origin))
	if !full {
		for _, name := range r.removed {
			head = appendText(head, fieldRemoved, name)
		}
		for _, name := range r.absent {
			head = protowire.AppendTag(head, fieldResources, protowire.BytesType)
			head = protowire.AppendBytes(head, appendText(appendText(nil, fieldResourceName, name), fieldAliases, name))
		}
	}
	f = make(frame, 1, 1+len(r.resources))
	f[0] = mem.SliceBuffer(head)
	for _, res := range r.resources {
		var entry []byte
		switch {
		case r.heartbeat && full:
			entry = res.StateHeartbeat()
		case r.heartbeat:
			entry = res.DeltaHeartbeat()
		case !full:
			entry = res.DeltaEntry()
		case lifetimes && res.TTL > 0:
			entry = res.WrappedEntry()
		default:
			entry = res.StateEntry()
		}
		f = append(f, mem.SliceBuffer(entry))
		size += len(entry)
	}
	return f, size
}

func appendText(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}
