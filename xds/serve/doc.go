// Package serve is the xDS server: both variants of the protocol, aggregated and a stream for each type, for Envoys and gRPC
// clients, and the client status discovery service (CSDS), by which existing tools read who has what.
//
// Each stream has a session: what the client subscribed to, holds, and has not yet acknowledged. A session is told of
// requests and of new snapshots and answers with responses; it does no I/O and reads no clock, so that every rule of the
// protocol is a table test. Order is make before break: what others refer to is sent and acknowledged first, what nothing
// refers to any more is removed last, and not while anything stands refused. At most one change per type is unacknowledged;
// what changes meanwhile merges into the next, so that a slow client costs no memory and nobody else time. A client that does
// not read is cut off.
//
// The streams of a viewpoint are a group, which watches the cache once for all of them, compares each pair of sets once, and
// rolls out: new configuration goes to a few of them first, what one of those refuses is quarantined, and all have the last
// good one again. Both the session and the rollout are pure; the stream and the group are the I/O around them.
//
// A client gets the viewpoint that its node claims, if Config.Authenticate lets it, within Limits. Requests are read by hand,
// and names that many clients subscribe to are held once; responses are frames of bytes that all streams share.
package serve
