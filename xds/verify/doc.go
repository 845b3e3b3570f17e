// Package verify is the second opinion between build and publish: it reads finished configuration as Envoy would and
// asks the world where every address is.
//
// It shares no code with plan or build. It walks what a request can do from each listener on: filters that set headers,
// match trees, routes with all their clusters and mirrors, every priority of every assignment, inner hops, gateways of
// other clusters. For every client country, tenant and data label that policies or tables tell apart, and for those they
// don't name, each address that is reachable must lie inside every boundary that the raw policies put on the request.
// What the walk does not understand is a violation: it fails closed.
//
// A Checker remembers, between calls, only what follows from resources that have not changed. It has one owner.
package verify
