package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/meridian-mesh/meridian/bench/internal/trial"
)

// TestMain lets the test's own binary play the children.
func TestMain(m *testing.M) {
	if trial.Role() != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

var small = []string{"-clusters", "2", "-nodes", "20", "-pods", "100", "-services", "5", "-rate", "50", "-seconds", "1"}

// The report has every figure that is promised, and they are plausible.
func TestAllIsMeasured(t *testing.T) {
	var out, errs bytes.Buffer
	if err := run(t.Context(), small, &out, &errs); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var report map[string]any
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]float64{"clusters": 2, "nodes": 20, "pods": 100, "services": 5} {
		if report[key] != want {
			t.Errorf("%s is %v, want %v", key, report[key], want)
		}
	}
	for part, figures := range map[string]map[string][2]float64{
		"meridian": {
			"heap_bytes": {1, 50e6}, "heap_bytes_per_pod": {1, 50_000}, "rss_bytes": {1e6, 1e9}, "ready_ms": {0.1, 30_000}, "all_read_ms": {0.1, 30_000},
			"event_to_push_ms_p50": {0.01, 5_000}, "event_to_push_ms_p99": {0.01, 30_000}, "cpu_ms_per_event": {0.001, 1_000},
		},
		"informers": {"heap_bytes": {200_000, 100e6}, "rss_bytes": {1e6, 1e9}, "ready_ms": {0.1, 30_000}},
		"ratio":     {"heap": {1, 1e6}, "rss": {0.1, 100}, "ready": {0.001, 1_000}},
	} {
		got, _ := report[part].(map[string]any)
		for key, bounds := range figures {
			if v, ok := got[key].(float64); !ok || v < bounds[0] || v > bounds[1] {
				t.Errorf("%s.%s is %v, want %v", part, key, got[key], bounds)
			}
		}
		if _, ok := got["heap_bytes_per_node"]; part == "meridian" && !ok {
			t.Error("there is no heap_bytes_per_node")
		}
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	r := result{size: size{Clusters: 20, Nodes: 500, Pods: 5000, Services: 200}, Meridian: meridian{Heap: 5e6, P99: 12.5}}
	if err := r.table(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"20 clusters with 500 nodes, 5000 pods, 200 services each", "99 of 100, ms", "12.5"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-o", "xml"}, {"-clusters", "0"}, {"-clusters", "257"}, {"-pods", "10", "-services", "20"}, {"-pods", "5000", "-services", "10"}, {"-seconds", "0"}, {"-nonsense"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
			t.Errorf("%v were taken", args)
		}
	}
}

func TestHelpHasExamples(t *testing.T) {
	var errs bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &bytes.Buffer{}, &errs); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("%v", err)
	}
	if !strings.Contains(errs.String(), "go run ./bench/kube -o json") {
		t.Error(errs.String())
	}
}
