package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/meridian-mesh/meridian/bench/internal/trial"
)

// figures are what is measured of a side. A ratio of two has the same keys.
type figures struct {
	FirstSync    float64 `json:"first_sync_ms"`
	P50          float64 `json:"p50_ms"`
	P99          float64 `json:"p99_ms"`
	Last         float64 `json:"last_ms"`
	CPU          float64 `json:"cpu_ms_per_change"`
	CPUOfAll     float64 `json:"cpu_ms_per_change_with_clients"`
	Alloc        float64 `json:"alloc_bytes_per_change"`
	Heap         float64 `json:"heap_bytes_per_client"`
	RSS          float64 `json:"rss_bytes_per_client"`
	FirstSyncCPU float64 `json:"first_sync_cpu_ms"`
	// StormLast is from the loss of all connections until the last client is current again, StormPeak the peak of the resident
	// set meanwhile through what it was before.
	StormLast float64 `json:"storm_last_ms,omitempty"`
	StormPeak float64 `json:"storm_peak_rss_ratio,omitempty"`
}

// result is what the program prints.
type result struct {
	Size     size     `json:"size"`
	Stock    *figures `json:"stock,omitempty"`
	Meridian figures  `json:"meridian"`
	// Ratio is stock through Meridian: above 1 where Meridian needs less.
	Ratio *figures `json:"ratio,omitempty"`
	// Bare is what a gRPC stream costs that has no xDS on it, and Beyond what Meridian's cost more.
	Bare   float64 `json:"bare_grpc_heap_bytes_per_client"`
	Beyond float64 `json:"meridian_heap_bytes_per_client_beyond_bare"`
}

// measure runs the sides one after the other.
func measure(ctx context.Context, s size, skipStock bool) (*result, error) {
	r := &result{Size: s}
	bare, err := measureSide(ctx, "bare", s)
	if err != nil {
		return nil, err
	}
	if !skipStock {
		if r.Stock, err = measureSide(ctx, "stock", s); err != nil {
			return nil, err
		}
	}
	ours, err := measureSide(ctx, "meridian", s)
	if err != nil {
		return nil, err
	}
	r.Meridian, r.Bare, r.Beyond = *ours, bare.Heap, ours.Heap-bare.Heap
	if r.Stock != nil {
		r.Ratio = ratio(r.Stock, ours)
	}
	return r, nil
}

// round is one side and its clients.
type round struct {
	side            string
	size            size
	server, clients *trial.Process
}

func measureSide(ctx context.Context, side string, s size) (f *figures, err error) {
	t := &round{side: side, size: s}
	if t.server, err = trial.Start(ctx, "server"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.server.Stop()) }()
	if t.clients, err = trial.Start(ctx, "clients"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.clients.Stop()) }()
	if f, err = t.run(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", side, err)
	}
	return f, nil
}

// run connects the clients and then makes changes.
func (t *round) run(ctx context.Context) (*figures, error) {
	f := &figures{}
	serving, err := tell(t.server, order{Do: "serve", Side: t.side, Size: t.size})
	if err != nil {
		return nil, err
	}
	before, err := tell(t.server, order{Do: "usage after collection"})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if _, err := tell(t.clients, order{Do: "connect", Address: serving.Address, Size: t.size}); err != nil {
		return nil, err
	}
	f.FirstSync = trial.Milliseconds(time.Since(began))
	trial.Pause(ctx, settle)
	after, err := tell(t.server, order{Do: "usage after collection"})
	if err != nil {
		return nil, err
	}
	f.FirstSyncCPU = trial.Milliseconds(after.Usage.CPU - before.Usage.CPU)
	f.Heap = perClient(before.Usage.Heap, after.Usage.Heap, t.size)
	f.RSS = perClient(before.Usage.RSS, after.Usage.RSS, t.size)
	if t.side == "bare" {
		return f, nil
	}
	if err := t.changes(ctx, f); err != nil || !t.size.Storm {
		return f, err
	}
	return f, t.storm(f, serving.Address)
}

// storm loses all clients at once.
func (t *round) storm(f *figures, address string) error {
	before, _, err := t.usage()
	if err != nil {
		return err
	}
	if _, err := tell(t.clients, order{Do: "expect storm"}); err != nil {
		return err
	}
	lost, err := tell(t.server, order{Do: "storm", Address: address})
	if err != nil {
		return err
	}
	got, err := tell(t.clients, order{Do: "wait"})
	if err != nil {
		return err
	}
	after, _, err := t.usage()
	if err != nil {
		return err
	}
	f.StormLast = trial.Milliseconds(time.Duration(slices.Max(got.Arrivals) - lost.At))
	f.StormPeak = float64(after.Peak) / float64(before.RSS)
	return nil
}

// settle is how long acknowledgements may take to be worked in before the next change is made.
const settle = 300 * time.Millisecond

// changes makes one change after the other, each when all clients have the last.
func (t *round) changes(ctx context.Context, f *figures) error {
	if t.side == "meridian" && t.size.profile != "" {
		if _, err := tell(t.server, order{Do: "profile", Profile: t.size.profile}); err != nil {
			return err
		}
	}
	before, crowdBefore, err := t.usage()
	if err != nil {
		return err
	}
	var all, lasts []float64
	for range t.size.Changes {
		latencies, err := t.change()
		if err != nil {
			return err
		}
		all, lasts = append(all, latencies...), append(lasts, slices.Max(latencies))
		trial.Pause(ctx, settle)
	}
	after, crowdAfter, err := t.usage()
	if err != nil {
		return err
	}
	if t.side == "meridian" && t.size.profile != "" {
		if _, err := tell(t.server, order{Do: "end profile"}); err != nil {
			return err
		}
	}
	n := float64(t.size.Changes)
	f.P50, f.P99, f.Last = trial.Quantile(all, 0.5), trial.Quantile(all, 0.99), trial.Quantile(lasts, 0.5)
	f.CPU = trial.Milliseconds(after.CPU-before.CPU) / n
	f.CPUOfAll = f.CPU + trial.Milliseconds(crowdAfter.CPU-crowdBefore.CPU)/n
	f.Alloc = float64(after.Alloc-before.Alloc) / n
	return nil
}

// change makes one, and is how long each client waited for it, in milliseconds.
func (t *round) change() ([]float64, error) {
	if _, err := tell(t.clients, order{Do: "expect"}); err != nil {
		return nil, err
	}
	made, err := tell(t.server, order{Do: "change"})
	if err != nil {
		return nil, err
	}
	got, err := tell(t.clients, order{Do: "wait"})
	if err != nil {
		return nil, err
	}
	latencies := make([]float64, len(got.Arrivals))
	for i, at := range got.Arrivals {
		if latencies[i] = trial.Milliseconds(time.Duration(at - made.At)); latencies[i] < 0 {
			return nil, errors.New("a client had a response before the change was made: the one before was answered twice")
		}
	}
	return latencies, nil
}

// usage is what server and clients have used so far.
func (t *round) usage() (server, clients trial.Usage, err error) {
	s, err := tell(t.server, order{Do: "usage"})
	if err != nil {
		return trial.Usage{}, trial.Usage{}, err
	}
	c, err := tell(t.clients, order{Do: "usage"})
	return s.Usage, c.Usage, err
}

func perClient(before, after uint64, s size) float64 {
	return (float64(after) - float64(before)) / float64(s.Clients)
}

// ratio divides each figure.
func ratio(stock, ours *figures) *figures {
	return &figures{
		FirstSync: stock.FirstSync / ours.FirstSync, P50: stock.P50 / ours.P50, P99: stock.P99 / ours.P99, Last: stock.Last / ours.Last,
		CPU: stock.CPU / ours.CPU, CPUOfAll: stock.CPUOfAll / ours.CPUOfAll, Alloc: stock.Alloc / ours.Alloc, Heap: stock.Heap / ours.Heap,
		RSS: stock.RSS / ours.RSS, FirstSyncCPU: stock.FirstSyncCPU / ours.FirstSyncCPU,
	}
}
