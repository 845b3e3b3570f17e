// Package e2e holds the end-to-end tests: real Envoys, a real control plane, real requests, for every sentence that
// Meridian says of the request path and of failures.
package e2e
