// Package authority plays the certificate authorities of trust domains: it issues what a real one would, and also what it
// should not. It writes no files. Authorities never change and may be used from any goroutine.
package authority
