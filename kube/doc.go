// Package kube reads what member clusters hold from their Kubernetes API servers: which endpoints a pool has, how they are, and what
// accelerators there are.
//
// Each member cluster has an owner of its own, which connects, fails, backs off and recovers by itself: a hanging API server
// holds nobody else up. What is read is kept as compact values made from each object as it arrives, never the objects.
// An outage empties nothing: the last state stays, its age is known (Status), and after Kubernetes.StaleAfter what the cluster said of
// readiness no longer counts, and nothing more fits there, while its endpoints remain.
//
// A census keeps what accelerators are counted from, in kube/gpu's words. It counts once all kinds that matter have been listed: with
// less, what is taken would count as free.
package kube
