// Package testbed holds what the end-to-end tests and the demo run Meridian against, all of it on one machine's loopback
// addresses: real Envoys, and servers, links and callers that behave like real ones.
//
//   - envoy runs real Envoys, kube real Kubernetes API servers, process any program;
//   - authority plays the certificate authorities of trust domains;
//   - modelserver acts like vLLM: OpenAI's API over a continuously batching engine, with its metrics, and faults on demand;
//   - dataserver answers plain HTTP, gRPC and TCP;
//   - link stands between two regions: delay, jitter, bandwidth, silence, cut;
//   - load sends requests at a rate and reports who answered them, how fast, and since when no more;
//   - port is what servers and links listen on: it can refuse, fall silent, and reset its connections;
//   - loopback finds free addresses.
//
// This package itself has no code. None of them imports testing: the demo runs them as well.
package testbed
