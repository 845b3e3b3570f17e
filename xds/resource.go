package xds

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Type is an xDS type URL.
type Type string

// The types that Meridian serves, in the order in which additions are sent: a resource comes after what it names.
const (
	TypeSecret   Type = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	TypeCluster  Type = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	TypeEndpoint Type = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	TypeListener Type = "type.googleapis.com/envoy.config.listener.v3.Listener"
	TypeRoute    Type = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// Types are all types, in the order of the constants.
func Types() []Type {
	return []Type{TypeSecret, TypeCluster, TypeEndpoint, TypeListener, TypeRoute}
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

// Resource is one finished xDS resource. Two resources with equal Version have equal Bytes.
type Resource struct {
	Type Type
	// Name is unique within the type and snapshot.
	Name string
	// Bytes is the message in the deterministic wire form: what a google.protobuf.Any of Type carries.
	Bytes []byte
	// Version is a hash of Bytes, so that equal content has an equal version on every replica.
	Version string
}

// NewResource serialises a message.
func NewResource(t Type, name string, message proto.Message) (*Resource, error) {
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("serialise %s %q: %w", t.Short(), name, err)
	}
	sum := sha256.Sum256(bytes)
	return &Resource{Type: t, Name: name, Bytes: bytes, Version: hex.EncodeToString(sum[:8])}, nil
}
