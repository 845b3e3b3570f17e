// Command xds measures Meridian's xDS server against go-control-plane's own cache and server, side by side in one run: the same
// resources, the same synthetic clients over real gRPC on loopback, the same changes.
//
//	go run ./bench/xds -clients 1000 -protocol delta -o json
//
// Each side is a process of its own, and so are the clients, so that CPU, allocations and heap are the server's alone; what the
// clients cost is in cpu_ms_per_change_with_clients. Every client has a connection and a stream, subscribes as an Envoy does,
// to all clusters and then to the endpoints of each by name, and acknowledges everything. A change is another weight for one
// endpoint, in every viewpoint or in as many as -touch says.
//
// With -storm the server at the end loses all connections at once, and a change comes while they are gone; clients come back
// within a second, say what they hold, and count as current when they have the change.
package main
