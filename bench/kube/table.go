package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// table prints a result for people.
func (r *result) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%d clusters with %d nodes, %d pods, %d services each\tinformers\tmeridian\tratio\t\n", r.Clusters, r.Nodes, r.Pods, r.Services)
	m := r.Meridian
	for _, row := range []struct {
		name                string
		theirs, ours, ratio float64
	}{
		{"heap, MB", r.Informers.Heap / 1e6, m.Heap / 1e6, r.Ratio.Heap},
		{"resident, MB", float64(r.Informers.RSS) / 1e6, float64(m.RSS) / 1e6, r.Ratio.RSS},
		{"resident at most, MB", float64(r.Informers.Peak) / 1e6, float64(m.Peak) / 1e6, float64(r.Informers.Peak) / float64(m.Peak)},
		{"ready after, ms", r.Informers.Ready, m.Ready, r.Ratio.Ready},
	} {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t\n", row.name, row.theirs, row.ours, row.ratio)
	}
	for _, row := range []struct {
		name string
		ours float64
	}{
		{"all read after, ms", m.AllRead}, {"heap a pod, bytes", m.HeapPerPod}, {"heap a node, bytes", m.HeapPerNode},
		{"event to push, median, ms", m.P50}, {"event to push, 99 of 100, ms", m.P99}, {"CPU of the control plane an event, ms", m.CPU},
		{"control plane ready after, ms", m.PlaneReady}, {"control plane's heap, MB", float64(m.PlaneHeap) / 1e6}, {"control plane resident, MB", float64(m.PlaneRSS) / 1e6},
	} {
		fmt.Fprintf(w, "%s\t\t%.1f\t\t\n", row.name, row.ours)
	}
	return w.Flush()
}
