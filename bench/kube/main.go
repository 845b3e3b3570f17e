package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/meridian-mesh/meridian/bench/internal/trial"
	"github.com/meridian-mesh/meridian/bench/kube/stub"
)

// size is what a run is about. The parent passes it on to its children as JSON.
type size struct {
	Clusters int `json:"clusters"`
	// Nodes, Pods and Services are of each cluster.
	Nodes    int `json:"nodes"`
	Pods     int `json:"pods"`
	Services int `json:"services"`
	// Rate is events a second over all clusters, for Seconds.
	Rate    float64 `json:"events_per_second"`
	Seconds float64 `json:"seconds"`
	// MaxMerge is how long the control plane merges changes at most; 0: its default.
	MaxMerge   time.Duration `json:"max_merge,omitempty"`
	cpuProfile string
	memProfile string
}

// shape is a cluster of the size.
func (s size) shape(index int) stub.Shape {
	return stub.Shape{Index: index, Nodes: s.Nodes, Pods: s.Pods, Services: s.Services}
}

// events is how many there are.
func (s size) events() int { return int(s.Rate * s.Seconds) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench/kube:", err)
		os.Exit(1)
	}
}

// run is the program. A child is told by its environment what it is; nobody else sets that.
func run(ctx context.Context, args []string, out, errs io.Writer) error {
	if role := trial.Role(); role != "" {
		return child(ctx, role)
	}
	s, format, err := parse(args, errs)
	if err != nil {
		return err
	}
	r, err := measure(ctx, s)
	if err != nil {
		return err
	}
	if format == "table" {
		return r.table(out)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

const usage = `Measure what reading member clusters costs, and how long a change takes to reach a proxy.

Examples:
  go run ./bench/kube -o json
  go run ./bench/kube -clusters 2 -nodes 50 -pods 500 -services 20 -seconds 5 -o table
  go run ./bench/kube -cpuprofile events.pprof -memprofile watcher.pprof

Flags:
`

func parse(args []string, errs io.Writer) (s size, format string, err error) {
	f := flag.NewFlagSet("bench/kube", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Usage = func() {
		fmt.Fprint(errs, usage)
		f.PrintDefaults()
	}
	f.IntVar(&s.Clusters, "clusters", 20, "member clusters")
	f.IntVar(&s.Nodes, "nodes", 500, "nodes of each")
	f.IntVar(&s.Pods, "pods", 5000, "pods of each")
	f.IntVar(&s.Services, "services", 200, "services of each, over which its pods are spread")
	f.Float64Var(&s.Rate, "rate", 100, "events a second, over all clusters")
	f.Float64Var(&s.Seconds, "seconds", 25, "how long there are events")
	f.DurationVar(&s.MaxMerge, "max-merge", 0, "how long the control plane merges changes at most (default: its own)")
	f.StringVar(&s.cpuProfile, "cpuprofile", "", "write a CPU profile of the control plane during the events")
	f.StringVar(&s.memProfile, "memprofile", "", "write a heap profile of the watcher when it holds everything")
	f.StringVar(&format, "o", "json", "json or table")
	if err := f.Parse(args); err != nil {
		return s, "", err
	}
	switch {
	case format != "json" && format != "table":
		err = fmt.Errorf("-o is %q, want json or table", format)
	case s.Clusters < 1 || s.Nodes < 1 || s.Services < 1 || s.Pods < s.Services || s.events() < 1:
		err = fmt.Errorf("sizes must be at least 1, -pods at least -services, -rate times -seconds at least 1")
	default:
		err = s.shape(s.Clusters - 1).Check()
	}
	return s, format, err
}
