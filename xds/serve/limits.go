package serve

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Limits bound what one client may use, so that none can hurt the others.
type Limits struct {
	// StreamsPerIdentity is how many streams one identity may have. Default 1,000.
	StreamsPerIdentity int
	// Viewpoints is how many viewpoints proxies may claim at a time, all together: each is planned for. Default 10,000.
	Viewpoints int
	// StreamsPerConnection is how many streams, of whatever service, one connection may have. Default 1,000.
	StreamsPerConnection int
	// Names is how many resources of one type a stream may name. Default 100,000.
	Names int
	// Types is how many types a stream may ask for. Default 32.
	Types int
	// MessageBytes is how large a request may be. Default 16 MiB.
	MessageBytes int
	// RequestsPerSecond is how many requests of a stream are read in the long run: a client that sends more is read from
	// more slowly. Default 200, after RequestBurst.
	RequestsPerSecond float64
	// RequestBurst is how many requests are read at once. Default 2,000.
	RequestBurst int
}

func (l *Limits) fill() {
	orDefault(&l.StreamsPerIdentity, 1_000)
	orDefault(&l.Viewpoints, 10_000)
	orDefault(&l.StreamsPerConnection, 1_000)
	orDefault(&l.Names, 100_000)
	orDefault(&l.Types, 32)
	orDefault(&l.MessageBytes, 16<<20)
	orDefault(&l.RequestsPerSecond, 200)
	orDefault(&l.RequestBurst, 2_000)
}

// Rejection is why a stream was turned away or cut off.
type Rejection string

// The reasons.
const (
	// RejectedIdentity: the node's claim is wrong, or not the peer's to make.
	RejectedIdentity Rejection = "identity"
	// RejectedStreams: the identity has too many streams, or there are too many viewpoints.
	RejectedStreams Rejection = "streams"
	// RejectedNames: the stream names too many resources or types.
	RejectedNames Rejection = "names"
	// RejectedMalformed: a request does not decode.
	RejectedMalformed Rejection = "malformed"
	// RejectedSilent: no first request came.
	RejectedSilent Rejection = "silent"
	// RejectedSlow: the client did not read a response in time.
	RejectedSlow Rejection = "slow"
)

// Rejections are all reasons.
func Rejections() []Rejection {
	return []Rejection{RejectedIdentity, RejectedStreams, RejectedNames, RejectedMalformed, RejectedSilent, RejectedSlow}
}

// within says whether a session still is within the limits.
func (l *Limits) within(s *session) error {
	if len(s.kinds) > l.Types {
		return status.Errorf(codes.ResourceExhausted, "a stream may ask for %d types", l.Types)
	}
	for _, k := range s.kinds {
		if n := k.sub.named.len(); n > l.Names {
			return status.Errorf(codes.ResourceExhausted, "%s: a stream may name %d resources, and this one names %d", k.typ.Short(), l.Names, n)
		}
	}
	return nil
}
