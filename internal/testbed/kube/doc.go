// Package kube runs real Kubernetes API servers for tests, each on an etcd of its own: no nodes, no controllers, so that
// what is in a cluster is exactly the objects that a test writes.
//
// Several fit on one machine. A server ends with its Server, and with the program that started it. `make kubernetes` builds
// what is run. All methods are safe for concurrent use.
package kube
