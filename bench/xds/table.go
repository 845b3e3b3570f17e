package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// table prints a result for people.
func (r *result) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%d clients, %d viewpoints (%d touched), %d services, %s\tstock\tmeridian\tratio\t\n", r.Size.Clients, r.Size.Views, r.Size.Touch, r.Size.Services, r.Size.Protocol)
	stock, ratio := r.Stock, r.Ratio
	if stock == nil {
		stock, ratio = &figures{}, &figures{}
	}
	for _, row := range []struct {
		name                string
		stock, ours, factor float64
	}{
		{"first sync, ms", stock.FirstSync, r.Meridian.FirstSync, ratio.FirstSync},
		{"first sync, CPU ms", stock.FirstSyncCPU, r.Meridian.FirstSyncCPU, ratio.FirstSyncCPU},
		{"change to the median client, ms", stock.P50, r.Meridian.P50, ratio.P50},
		{"change to 99 of 100, ms", stock.P99, r.Meridian.P99, ratio.P99},
		{"change to the last client, ms", stock.Last, r.Meridian.Last, ratio.Last},
		{"CPU a change, ms", stock.CPU, r.Meridian.CPU, ratio.CPU},
		{"CPU a change with clients, ms", stock.CPUOfAll, r.Meridian.CPUOfAll, ratio.CPUOfAll},
		{"allocated a change, KB", stock.Alloc / 1000, r.Meridian.Alloc / 1000, ratio.Alloc},
		{"heap a client, KB", stock.Heap / 1000, r.Meridian.Heap / 1000, ratio.Heap},
		{"resident a client, KB", stock.RSS / 1000, r.Meridian.RSS / 1000, ratio.RSS},
	} {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t\n", row.name, row.stock, row.ours, row.factor)
	}
	if r.Size.Storm {
		fmt.Fprintf(w, "storm: all current again after, ms\t%.1f\t%.1f\t\t\n", stock.StormLast, r.Meridian.StormLast)
		fmt.Fprintf(w, "storm: peak resident set through before\t%.2f\t%.2f\t\t\n", stock.StormPeak, r.Meridian.StormPeak)
	}
	fmt.Fprintf(w, "heap a bare gRPC stream, KB\t\t%.1f\t\t\n", r.Bare/1000)
	fmt.Fprintf(w, "heap a client beyond that, KB\t\t%.1f\t\t\n", r.Beyond/1000)
	return w.Flush()
}
