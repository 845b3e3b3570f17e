// Package serve is the xDS server: aggregated discovery, state of the world and delta at once, for Envoys and gRPC clients.
//
// Each stream is one goroutine that owns a session: what the client subscribed to, holds, and has not yet
// acknowledged. A session is told of requests and of new snapshots and answers with responses; it does no I/O and reads
// no clock, so that every rule of the protocol is a table test. Order is make before break: what others refer to is
// sent and acknowledged first, what nothing refers to any more is removed last, and not while anything stands refused. At
// most one change per type is unacknowledged; what changes meanwhile merges into the next.
//
// A client gets the viewpoint that its node claims. Status says what each connected proxy holds and what it refused.
package serve
