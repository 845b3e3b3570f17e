// Package bench holds the benchmarks that span packages: what an operator would time with a stopwatch. Those of one
// package stand beside its code; `make bench` runs them all, and RESULTS.md keeps the numbers that matter.
package bench
