package xds

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"
)

// Type is an xDS type URL.
type Type string

// The types that Meridian builds, and those that it serves whoever built them, in the order in which additions are sent: a
// resource comes after what it names.
const (
	TypeSecret      Type = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	TypeCluster     Type = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	TypeEndpoint    Type = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	TypeListener    Type = "type.googleapis.com/envoy.config.listener.v3.Listener"
	TypeScopedRoute Type = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration"
	TypeRoute       Type = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	TypeVirtualHost Type = "type.googleapis.com/envoy.config.route.v3.VirtualHost"
	TypeExtension   Type = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
	TypeRuntime     Type = "type.googleapis.com/envoy.service.runtime.v3.Runtime"
)

var ordered = []Type{TypeSecret, TypeExtension, TypeCluster, TypeEndpoint, TypeListener, TypeScopedRoute, TypeRoute, TypeVirtualHost, TypeRuntime}

// Types are the types that have a place in the order, in that order. A type that is none of them comes last.
func Types() []Type { return slices.Clone(ordered) }

// Compare orders types as Types does, and those that have no place there by name.
func (t Type) Compare(o Type) int {
	return cmp.Or(cmp.Compare(t.place(), o.place()), cmp.Compare(t, o))
}

func (t Type) place() int {
	if i := slices.Index(ordered, t); i >= 0 {
		return i
	}
	return len(ordered)
}

// Short is the type's last word, for people and metrics: "Cluster".
func (t Type) Short() string {
	for i := len(t) - 1; i >= 0; i-- {
		if t[i] == '.' {
			return string(t[i+1:])
		}
	}
	return string(t)
}

// Resource is one finished xDS resource. Make one with NewResource or Serialised: it holds its wire form, which all
// responses share.
type Resource struct {
	Type Type
	// Name is unique within the type and snapshot.
	Name string
	// Bytes is the message in the deterministic wire form: what a google.protobuf.Any of Type carries.
	Bytes []byte
	// Version is a hash of Bytes, so that equal content has an equal version on every replica.
	Version string
	// Aliases are other names that a client may ask by, such as the domains of a VirtualHost.
	Aliases []string
	// TTL, where not 0, is how long a client keeps the resource without hearing of it.
	TTL time.Duration

	wire wire   // all of the above, as responses carry it
	hash uint64 // of type, name and version: what the resource adds to a Set's version
}

// Option says more of a resource than most have.
type Option func(*Resource)

// WithAliases gives a resource other names.
func WithAliases(aliases ...string) Option { return func(r *Resource) { r.Aliases = aliases } }

// WithTTL lets clients forget a resource that they have not heard of for so long.
func WithTTL(ttl time.Duration) Option { return func(r *Resource) { r.TTL = ttl } }

// NewResource serialises a message.
func NewResource(t Type, name string, message proto.Message, options ...Option) (*Resource, error) {
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("serialise %s %q: %w", t.Short(), name, err)
	}
	return Serialised(t, name, VersionOf(bytes), bytes, options...), nil
}

// VersionOf is the version of a resource with these bytes.
func VersionOf(bytes []byte) string {
	sum := sha256.Sum256(bytes)
	return hex.EncodeToString(sum[:8])
}

// Serialised makes a resource of a message that is serialised already, such as one that was kept on disk. The caller
// vouches for the version, and must not change bytes afterwards.
func Serialised(t Type, name, version string, bytes []byte, options ...Option) *Resource {
	r := &Resource{Type: t, Name: name, Version: version}
	for _, o := range options {
		o(r)
	}
	r.wire = newWire(r, bytes)
	r.Bytes = r.wire.value()
	r.hash = HashOf(t, []byte(name), []byte(version))
	return r
}

// HashOf is what a resource adds to the version of a Set: the sum of these, modulo 2^64, is the version of all. Who knows the
// names and versions that a client holds can so tell whether it holds exactly what is in a set.
func HashOf(t Type, name, version []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.WriteString(string(t)) // a Digest never fails
	for _, part := range [][]byte{separator, name, separator, version} {
		_, _ = d.Write(part)
	}
	return d.Sum64()
}

var separator = []byte{0}

// Hash is what the resource adds to the version of a Set.
func (r *Resource) Hash() uint64 { return r.hash }
