// Package dataserver runs plain servers of HTTP, gRPC and TCP: the data services that are pinned and failed over beside
// models.
//
// Each answers with its name on a line, and then with what it was sent; so a caller sees who served it. It counts the
// bytes that came. The end-to-end tests and the demo run it. The methods of a Server are safe for concurrent use.
package dataserver
