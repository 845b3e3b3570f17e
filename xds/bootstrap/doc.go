// Package bootstrap writes the configuration with which an Envoy starts: who it is and where Meridian is. Everything
// else comes over xDS. It is pure.
package bootstrap
