// Package build says a plan in Envoy's words: a file per part of the configuration, model in, resources out.
//
// Build is pure. It gives one snapshot for each viewpoint of the world that some Gateway policy selects. A request goes
//
//	edge listener -> class cluster -> inner hop of the chosen member cluster -> pool cluster, or gateway cluster
//
// so that the choice between clusters (the class cluster: priorities, shares, retries to the next) and the choice between
// servers (the pool cluster: health checks, circuit breakers, least request) are one Envoy cluster each, and a change of
// either is one small resource. docs/architecture.md draws it.
//
// A Memo only saves work. It has one owner; resources and snapshots are immutable and safe for any number of readers.
package build
