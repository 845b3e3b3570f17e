// Package envoy runs real Envoys for tests and the demo: start, wait until ready, freeze, stop, kill, and ask what one
// holds and what it has refused.
//
// An Envoy ends with its Process, and with the program that started it should that die, however it dies: the kernel
// sees to it, so nothing survives a crashed test. Its admin interface is on a loopback address of the caller's choice.
// All methods are safe for concurrent use.
package envoy
