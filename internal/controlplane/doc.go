// Package controlplane wires the edges to the pipeline: what `meridian serve` runs, and what the demo and the end-to-end
// tests run.
//
// New opens the listeners, Run serves until its context ends and returns when everything that it started has ended. The
// methods of a Plane may be called from any goroutine.
package controlplane
