package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"github.com/meridian-mesh/meridian/bench/internal/trial"
	"github.com/meridian-mesh/meridian/internal/controlplane"
)

// plane is the whole control plane.
type plane struct {
	cancel  context.CancelFunc
	plane   *controlplane.Plane
	ended   chan error
	profile *os.File
}

func (p *plane) do(ctx context.Context, o order) (answer, error) {
	switch o.Do {
	case "serve":
		return p.serve(ctx, o)
	case "usage", "usage after collection":
		return usageOf(o)
	case "profile":
		var err error
		if p.profile, err = os.Create(o.Profile); err != nil {
			return answer{}, err
		}
		return answer{}, pprof.StartCPUProfile(p.profile)
	case "end profile":
		pprof.StopCPUProfile()
		return answer{}, p.profile.Close()
	}
	return unknown(o)
}

// serve starts the control plane, and waits until it knows all endpoints.
func (p *plane) serve(ctx context.Context, o order) (a answer, err error) {
	folder := filepath.Join(o.Folder, "policies")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return a, err
	}
	if err := os.WriteFile(filepath.Join(folder, "bench.yaml"), []byte(policyText(o.Size, o.Folder)), 0o600); err != nil {
		return a, err
	}
	began := time.Now()
	p.plane, err = controlplane.New(controlplane.Config{Policies: folder, XDS: "127.0.0.1:0", HTTP: "127.0.0.1:0", Demo: true, MaxMerge: o.Size.MaxMerge, Log: silence})
	if err != nil {
		return a, err
	}
	ctx, p.cancel = context.WithCancel(ctx)
	p.ended = make(chan error, 1)
	go func() { p.ended <- p.plane.Run(ctx) }()
	for !p.knows(o.Size) {
		if time.Since(began) > patience || ctx.Err() != nil {
			return a, fmt.Errorf("the control plane does not know all endpoints after %v", time.Since(began))
		}
		trial.Pause(ctx, 10*time.Millisecond)
	}
	return answer{Address: p.plane.XDS().String(), Began: began.UnixNano(), Ready: time.Now().UnixNano()}, nil
}

// knows says whether all pools have all their endpoints, and all clusters are counted.
func (p *plane) knows(s size) bool {
	w := p.plane.State().World
	if w.Policies() == nil {
		return false
	}
	for i := range w.Policies().Clusters {
		if w.Accelerators(w.Policies().Clusters[i].Metadata.Name) == nil {
			return false
		}
	}
	pools := w.Pools()
	for _, pool := range pools {
		if len(pool.Endpoints) != s.shape(0).PodsPerService() {
			return false
		}
	}
	return len(pools) == s.Clusters*s.Services
}

func (p *plane) end() error {
	if p.cancel == nil {
		return nil
	}
	p.cancel()
	return <-p.ended
}
