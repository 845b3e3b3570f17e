// Package identity says who is at the other end of an xDS stream, and whether that one may have what it asks for.
//
// Credentials serve the port over TLS 1.3. A client certificate is asked for and, where given, must be a SPIFFE X.509-SVID
// that chains to the bundle of its own trust domain: no bundle vouches for another. Certificates, key and bundles are
// followed on disk; what can't be used changes nothing. Handshakes in flight are bounded, each has a time limit, and where
// there are too many those give way whose peers keep us waiting.
//
// An Authenticator is asked at the start of each stream. It takes the certificate's SPIFFE ID or, without one, the service
// account of a bearer token that the API server of the claimed cluster vouches for (a Reviewer), and holds it against what
// the node claims and what the Cluster's policy binds (Authorize). Whatever can't be proved is refused: unanswered reviews
// are Unavailable, never permitted. Over plaintext nobody is asked.
//
// Tokens are never logged, and kept as hashes only. Everything here may be called from any goroutine.
package identity
