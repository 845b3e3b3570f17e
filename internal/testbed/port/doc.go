// Package port is a TCP address that can behave like that of a host in trouble: refuse connections, stay silent, and
// reset all connections at once. What simulates servers and links listens on one; ServeHTTP serves HTTP on it.
//
// A Port holds its number from Open to Close, also while it refuses: the kernel gives it to nobody else. All methods are
// safe for concurrent use. It depends on Linux's TCP.
package port
