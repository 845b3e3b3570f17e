// Package loopback finds free ports on loopback addresses, so that every simulated cluster can have an address of its
// own out of 127.0.0.0/8. It is safe for concurrent use.
package loopback
