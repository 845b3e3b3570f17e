// Package flow finds minimum-cost flows on integers. It knows no domain: plan gives it demand, capacity and distance.
//
// The method is that of successive shortest paths with node potentials, each Dijkstra run followed by a blocking flow
// over all paths of that length (the primal-dual form; Ahuja, Magnanti, Orlin, "Network Flows", 9.7 and 9.8). Costs
// are not negative, so potentials start at zero and reduced costs stay that way.
//
// The same calls in the same order give the same flow to the last unit: ties go to the node, then the arc, that came
// first. A Graph is not safe for concurrent use; it keeps its buffers from one problem to the next.
package flow
