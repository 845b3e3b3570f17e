package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/meridian-mesh/meridian/kube"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// patience is how long anything may take.
const patience = 10 * time.Minute

// silence drops what the code under test logs.
var silence = slog.New(slog.NewTextHandler(io.Discard, nil))

// watcher is what Meridian reads clusters with.
type watcher struct {
	cancel context.CancelFunc
	ended  chan error

	mu      sync.Mutex
	lacking map[world.PoolKey]bool        // under mu: the pools that have not been told yet
	counted map[policies.ClusterName]bool // under mu: the clusters whose accelerators have not been counted yet
	each    int                           // under mu: endpoints of a pool
	told    chan struct{}
}

func (w *watcher) do(ctx context.Context, o order) (answer, error) {
	switch o.Do {
	case "read":
		return w.read(ctx, o)
	case "usage", "usage after collection":
		return usageOf(o)
	case "heap profile":
		return answer{}, writeHeap(o.Profile)
	}
	return unknown(o)
}

// read reads until all pools have all their endpoints, and all clusters are counted.
func (w *watcher) read(ctx context.Context, o order) (answer, error) {
	w.lacking, w.each, w.told, w.ended = map[world.PoolKey]bool{}, o.Size.shape(0).PodsPerService(), make(chan struct{}), make(chan error, 1)
	for s := range o.Policies.Services {
		for c := range o.Policies.Clusters {
			w.lacking[poolOf(s, c)] = true
		}
	}
	set, err := policySet(o.Policies, o.Folder)
	if err != nil {
		return answer{}, err
	}
	w.counted = map[policies.ClusterName]bool{}
	for i := range set.Clusters {
		w.counted[set.Clusters[i].Metadata.Name] = true
	}
	reader, err := kube.New(kube.Config{Found: w.take, Counted: w.count, Log: silence})
	if err != nil {
		return answer{}, err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	began := time.Now()
	reader.Update(set)
	go func() { w.ended <- reader.Run(ctx) }()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-w.told:
		return answer{Began: began.UnixNano(), Ready: time.Now().UnixNano()}, nil
	case <-late.C:
		return answer{}, fmt.Errorf("not all pools were told after %v: %v", patience, reader.Status())
	}
}

func (w *watcher) take(f world.PoolFound) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(f.Endpoints) == w.each {
		delete(w.lacking, f.Pool)
		w.look()
	}
}

func (w *watcher) count(f world.AcceleratorsCounted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.counted, f.Cluster)
	w.look()
}

// look says that all has been told, once. The caller holds mu.
func (w *watcher) look() {
	if w.lacking != nil && len(w.lacking)+len(w.counted) == 0 {
		w.lacking = nil
		close(w.told)
	}
}

func (w *watcher) end() error {
	if w.cancel == nil {
		return nil
	}
	w.cancel()
	return <-w.ended
}

// writeHeap writes what is in use now.
func writeHeap(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := pprof.Lookup("heap").WriteTo(f, 0); err != nil {
		return err
	}
	return f.Close()
}
