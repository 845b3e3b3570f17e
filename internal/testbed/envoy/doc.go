// Package envoy runs real Envoys for tests and the demo: start, wait until ready, stop, kill, freeze.
//
// An Envoy ends with its Process, and with the program that started it should that die. Its admin interface is on a
// loopback address of the caller's choice. Methods are safe for concurrent use.
package envoy
