// Package probe asks endpoints whether they are up: over HTTP, by gRPC's health service, or by opening a connection.
//
// Targets says what the policies want probed. A Prober probes each target at its own interval, evenly spread, with
// bounded concurrency, and hands on a health.Probed for each outcome. The command wires it to internal/pipeline and
// updates its targets when policies change. A Prober's methods but Run may be called from any goroutine.
package probe
