// Package conformance runs the public xDS conformance suite, ii/xds-test-harness, against xds/serve. It has no code but its
// tests: the suite's own program is given from outside, by the environment variable XTH, and `make conformance` runs it.
package conformance
