// Package mesh starts a whole simulated mesh on loopback addresses: a control plane, and in each cluster a real Envoy
// gateway and model servers, joined by mutual TLS. Tests and the demo run on it.
//
// Each cluster has a network of its own out of 127.0.0.0/8. Start returns when every gateway is ready and has been sent
// its configuration; Stop ends everything. Methods may be called from any goroutine.
package mesh
