// Package verify is the second opinion between build and publish: it reads finished configuration as Envoy would and
// asks the world where every address is. Its callers are the pipeline, which publishes nothing that has a violation, and
// the commands validate and simulate.
//
// It shares no code with plan or build. First, each resource by itself: it must decode, be valid, and use only the part of
// Envoy's API that the vocabulary lists, in packed messages as well. What is not understood is a violation: it fails
// closed. Then, what resources name must be there. Then it walks what a request can do from each listener on: filters
// that set headers, match trees, routes with all their clusters and mirrors, every priority of every assignment, inner
// hops, gateways of other clusters and how they are asked. For every client country, tenant and data label that policies
// or tables tell apart, and for those they don't name, each address that is reachable must lie inside every boundary that
// the raw policies put on the request; and what comes from another cluster's gateway must end here.
//
// A Checker remembers what passed, so that a check costs what has changed. It is pure otherwise, has one owner, and
// says the same as a Check without a memory.
package verify
