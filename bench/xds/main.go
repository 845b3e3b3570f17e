package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/meridian-mesh/meridian/bench/internal/trial"
)

// size is what a run is about. The parent passes it on to its children as JSON.
type size struct {
	Clients   int    `json:"clients"`
	Services  int    `json:"services"`
	Endpoints int    `json:"endpoints"`
	Views     int    `json:"viewpoints"`
	Touch     int    `json:"touched_viewpoints"`
	Changes   int    `json:"changes"`
	Protocol  string `json:"protocol"`
	Storm     bool   `json:"storm,omitempty"`
	profile   string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench/xds:", err)
		os.Exit(1)
	}
}

// run is the program. A child is told by its environment what it is; nobody else sets that.
func run(ctx context.Context, args []string, out, errs io.Writer) error {
	if role := trial.Role(); role != "" {
		return child(ctx, role)
	}
	s, skip, format, err := parse(args, errs)
	if err != nil {
		return err
	}
	result, err := measure(ctx, s, skip)
	if err != nil {
		return err
	}
	if format == "table" {
		return result.table(out)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(result)
}

func parse(args []string, errs io.Writer) (s size, skipStock bool, format string, err error) {
	f := flag.NewFlagSet("bench/xds", flag.ContinueOnError)
	f.SetOutput(errs)
	f.IntVar(&s.Clients, "clients", 1000, "synthetic clients, a connection each")
	f.StringVar(&s.Protocol, "protocol", "delta", "delta or sotw")
	f.IntVar(&s.Services, "services", 1000, "clusters, and as many assignments")
	f.IntVar(&s.Endpoints, "endpoints", 10, "endpoints of each")
	f.IntVar(&s.Views, "viewpoints", 100, "viewpoints, over which the clients are spread")
	f.IntVar(&s.Touch, "touch", 0, "viewpoints that a change touches (default: all)")
	f.IntVar(&s.Changes, "changes", 20, "changes, one after the other")
	f.BoolVar(&skipStock, "skip-stock", false, "measure Meridian alone")
	f.BoolVar(&s.Storm, "storm", false, "at the end, lose all clients at once and let them come back within a second (delta only)")
	f.StringVar(&s.profile, "cpuprofile", "", "write a CPU profile of Meridian's server during the changes")
	f.StringVar(&format, "o", "json", "json or table")
	if err := f.Parse(args); err != nil {
		return s, false, "", err
	}
	if s.Touch == 0 {
		s.Touch = s.Views
	}
	switch {
	case s.Protocol != "delta" && s.Protocol != "sotw":
		err = fmt.Errorf("-protocol is %q, want delta or sotw", s.Protocol)
	case s.Storm && s.Protocol != "delta":
		err = fmt.Errorf("-storm is measured with -protocol delta")
	case format != "json" && format != "table":
		err = fmt.Errorf("-o is %q, want json or table", format)
	case s.Clients < 1 || s.Services < 1 || s.Endpoints < 1 || s.Changes < 1 || s.Views < 1 || s.Views > s.Clients || s.Touch > s.Views:
		err = fmt.Errorf("sizes must be at least 1, -viewpoints at most -clients, -touch at most -viewpoints")
	}
	return s, skipStock, format, err
}
