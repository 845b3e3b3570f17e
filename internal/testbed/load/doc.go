// Package load sends requests for inference as many callers would, and reports what came of them: who answered, how fast,
// what failed, and all of it second by second, so that spill and failover can be seen and measured.
//
// In an open loop (Config.Rate) each request has its time, whatever became of those before it, and its latency counts from
// that time: a server that stalls can't slow the load down and hide its stall. In a closed loop a number of callers sends
// one request after the other.
//
// A request succeeded if its status is 2xx and its answer is complete: a stream that ends without its last event did not.
// Nothing is sent twice. Reports are bounded in size by Config.Requests and the number of clusters. The end-to-end tests
// and the demo use it.
package load
