// Command kube measures what it costs to read member clusters from their API servers, and how long a change there takes to reach a proxy.
//
//	go run ./bench/kube -o json
//	go run ./bench/kube -clusters 2 -nodes 50 -pods 500 -services 20 -o table
//
// The API servers are played by bench/kube/stub, in a process of their own: clusters with as many nodes, pods and services as the flags
// say, each. Three things read them, one after the other, each in a process of its own:
//
//   - meridian: kube.Watcher. heap_bytes is what it holds beyond what it holds of clusters that are empty; ready_ms is until all
//     pools have been told, all_read_ms until nothing was sent any more. Heap per node is of clusters with nothing but nodes.
//   - informers: plain shared informers for nodes, pods, services and EndpointSlices, over the same wire in the same form.
//   - the whole control plane, with a delta client in each cluster that holds the endpoints of its pools. Pods are then replaced, at
//     random times: event_to_push is from the EndpointSlice's event until a client has a response with the new address.
//
// A ratio is informers through Meridian: above 1 where Meridian needs less.
package main
