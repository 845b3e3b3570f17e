// Package stub plays the API server of a large cluster for benchmarks: lists with pages, watches that stream what there is first,
// bookmarks, resource versions, field and label selectors, protobuf and JSON over HTTP/2 and TLS, as client-go asks for them.
//
// Its objects are as large as real ones, and are made from a few templates when they are sent, so that a hundred thousand pods need no
// memory here. It only reads and tells; Replace has a pod replaced, which is what happens in a cluster.
package stub
