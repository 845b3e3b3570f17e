// Package netns runs a program in a network namespace of its own, in which only loopback is, with more addresses than 127.0.0.0/8.
//
// Kubernetes refuses loopback addresses in EndpointSlices, so that servers which a real API server is to list need others. In a
// namespace they exist for that program and its children alone, nothing leaves it, and nothing is left when it ends.
package netns
