package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/meridian-mesh/meridian/bench/internal/trial"
)

// meridian is what is measured of Meridian.
type meridian struct {
	Heap        float64 `json:"heap_bytes"`
	HeapPerPod  float64 `json:"heap_bytes_per_pod"`
	HeapPerNode float64 `json:"heap_bytes_per_node"`
	RSS         uint64  `json:"rss_bytes"`
	Peak        uint64  `json:"peak_rss_bytes"`
	Ready       float64 `json:"ready_ms"`
	AllRead     float64 `json:"all_read_ms"`
	P50         float64 `json:"event_to_push_ms_p50"`
	P99         float64 `json:"event_to_push_ms_p99"`
	CPU         float64 `json:"cpu_ms_per_event"`
	PlaneReady  float64 `json:"plane_ready_ms"`
	PlaneHeap   uint64  `json:"plane_heap_bytes"`
	PlaneRSS    uint64  `json:"plane_rss_bytes"`
}

// baseline is what is measured of plain informers.
type baseline struct {
	Heap  float64 `json:"heap_bytes"`
	RSS   uint64  `json:"rss_bytes"`
	Peak  uint64  `json:"peak_rss_bytes"`
	Ready float64 `json:"ready_ms"`
}

// ratio is informers through Meridian: above 1 where Meridian needs less.
type ratio struct {
	Heap  float64 `json:"heap"`
	RSS   float64 `json:"rss"`
	Ready float64 `json:"ready"`
}

// result is what the program prints.
type result struct {
	size
	Meridian  meridian `json:"meridian"`
	Informers baseline `json:"informers"`
	Ratio     ratio    `json:"ratio"`
}

// measure runs all, one after the other.
func measure(ctx context.Context, s size) (*result, error) {
	r := &result{size: s}
	nothing, nodes := s, s
	nothing.Nodes, nothing.Pods, nothing.Services = 0, 0, 0
	nodes.Pods, nodes.Services = 0, 0
	reads := map[string]reading{}
	for _, run := range []struct {
		side, what string
		held       size
	}{{"meridian", "nothing", nothing}, {"meridian", "nodes", nodes}, {"meridian", "all", s}, {"informers", "nothing", nothing}, {"informers", "all", s}} {
		got, err := measureReading(ctx, run.side, run.held, s)
		if err != nil {
			return nil, fmt.Errorf("%s reads %s: %w", run.side, run.what, err)
		}
		reads[run.side+" "+run.what] = got
	}
	r.fill(reads)
	if err := measureEvents(ctx, s, &r.Meridian); err != nil {
		return nil, fmt.Errorf("event to push: %w", err)
	}
	return r, nil
}

// fill works out what the readings say.
func (r *result) fill(reads map[string]reading) {
	clusters := float64(r.Clusters)
	all, nodes, nothing := reads["meridian all"], reads["meridian nodes"], reads["meridian nothing"]
	m := &r.Meridian
	m.Heap = all.heap - nothing.heap
	m.HeapPerPod = (all.heap - nodes.heap) / (clusters * float64(r.Pods))
	m.HeapPerNode = (nodes.heap - nothing.heap) / (clusters * float64(r.Nodes))
	m.RSS, m.Peak, m.Ready, m.AllRead = all.rss, all.peak, all.ready, all.allRead
	theirs := reads["informers all"]
	r.Informers = baseline{theirs.heap - reads["informers nothing"].heap, theirs.rss, theirs.peak, theirs.ready}
	r.Ratio = ratio{r.Informers.Heap / m.Heap, float64(theirs.rss) / float64(all.rss), theirs.ready / all.ready}
}

// reading is what one reader of the clusters used. Times are in milliseconds since it began.
type reading struct {
	heap           float64
	rss, peak      uint64
	ready, allRead float64
}

// settle is how long nothing must have been sent for all to be read.
const settle = time.Second

// measureReading has one side read clusters that hold some size.
func measureReading(ctx context.Context, side string, held, whole size) (r reading, err error) {
	s, err := newScene(ctx, held)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	reader, err := s.start(ctx, side)
	if err != nil {
		return r, err
	}
	read, err := s.tell(reader, order{Do: "read", Size: held, Policies: whole, Folder: s.folder})
	if err != nil {
		return r, err
	}
	last, err := s.quiet(ctx)
	if err != nil {
		return r, err
	}
	r.ready, r.allRead = milliseconds(read.Began, read.Ready), max(milliseconds(read.Began, last), milliseconds(read.Began, read.Ready))
	used, err := s.tell(reader, order{Do: "usage after collection"})
	if err != nil {
		return r, err
	}
	r.heap, r.rss, r.peak = float64(used.Usage.Heap), used.Usage.RSS, used.Usage.Peak
	if side == "meridian" && held.Pods > 0 && whole.memProfile != "" {
		_, err = s.tell(reader, order{Do: "heap profile", Profile: whole.memProfile})
	}
	return r, err
}

// measureEvents has the control plane read the clusters, and pods in them replaced.
func measureEvents(ctx context.Context, s size, m *meridian) (err error) {
	scene, err := newScene(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scene.end()) }()
	plane, err := scene.start(ctx, "plane")
	if err != nil {
		return err
	}
	crowd, err := scene.start(ctx, "proxies")
	if err != nil {
		return err
	}
	serving, err := scene.tell(plane, order{Do: "serve", Size: s, Folder: scene.folder})
	if err != nil {
		return err
	}
	m.PlaneReady = milliseconds(serving.Began, serving.Ready)
	if _, err := scene.tell(crowd, order{Do: "connect", Size: s, Address: serving.Address}); err != nil {
		return err
	}
	if _, err := scene.quiet(ctx); err != nil {
		return err
	}
	return scene.events(s, m, plane, crowd)
}

// events makes them, and works out how long they took.
func (s *scene) events(of size, m *meridian, plane, crowd *trial.Process) error {
	before, err := s.tell(plane, order{Do: "usage after collection"})
	if err != nil {
		return err
	}
	m.PlaneHeap, m.PlaneRSS = before.Usage.Heap, before.Usage.RSS
	if of.cpuProfile != "" {
		if _, err := s.tell(plane, order{Do: "profile", Profile: of.cpuProfile}); err != nil {
			return err
		}
	}
	made, err := s.tell(s.clusters, order{Do: "events", Size: of})
	if err != nil {
		return err
	}
	got, err := s.tell(crowd, order{Do: "arrivals"})
	if err != nil {
		return err
	}
	after, err := s.tell(plane, order{Do: "usage"})
	if err != nil {
		return err
	}
	if of.cpuProfile != "" {
		if _, err := s.tell(plane, order{Do: "end profile"}); err != nil {
			return err
		}
	}
	var took []float64
	for i, at := range made.Events {
		took = append(took, milliseconds(at, got.Events[i]))
	}
	m.P50, m.P99 = trial.Quantile(took, 0.5), trial.Quantile(took, 0.99)
	m.CPU = trial.Milliseconds(after.Usage.CPU-before.Usage.CPU) / float64(len(took))
	return nil
}

// milliseconds are those between two times in Unix nanoseconds.
func milliseconds(from, to int64) float64 { return trial.Milliseconds(time.Duration(to - from)) }

// scene is the clusters and those who read them, until its end.
type scene struct {
	folder   string
	clusters *trial.Process
	others   []*trial.Process
}

func newScene(ctx context.Context, held size) (*scene, error) {
	folder, err := os.MkdirTemp("", "meridian-bench-")
	if err != nil {
		return nil, err
	}
	s := &scene{folder: folder}
	if s.clusters, err = trial.Start(ctx, "clusters"); err == nil {
		_, err = s.tell(s.clusters, order{Do: "serve", Size: held, Folder: folder})
	}
	if err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// start starts a reader.
func (s *scene) start(ctx context.Context, role string) (*trial.Process, error) {
	p, err := trial.Start(ctx, role)
	if err == nil {
		s.others = append(s.others, p)
	}
	return p, err
}

func (s *scene) tell(p *trial.Process, o order) (answer, error) {
	return trial.Tell[order, answer](p, o.Do, o)
}

// quiet waits until the clusters have sent nothing for a while, and is when they last did.
func (s *scene) quiet(ctx context.Context) (last int64, err error) {
	for sent := int64(-1); ; trial.Pause(ctx, settle) {
		a, err := s.tell(s.clusters, order{Do: "sent"})
		if err != nil || a.Sent == sent {
			return a.SentAt, errors.Join(err, ctx.Err())
		}
		sent = a.Sent
	}
}

// end ends the readers first: they must not see the clusters go.
func (s *scene) end() (err error) {
	for _, p := range s.others {
		err = errors.Join(err, p.Stop())
	}
	if s.clusters != nil {
		err = errors.Join(err, s.clusters.Stop())
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}
