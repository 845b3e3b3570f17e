package main

import (
	"bytes"
	"encoding/json"
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

// Both sides serve both protocols, and the report has every figure that is promised.
func TestBothSidesAreMeasured(t *testing.T) {
	for _, protocol := range []string{"delta", "sotw"} {
		t.Run(protocol, func(t *testing.T) {
			var out, errs bytes.Buffer
			args := []string{"-clients", "4", "-viewpoints", "2", "-services", "3", "-endpoints", "2", "-changes", "2", "-protocol", protocol}
			if err := run(t.Context(), args, &out, &errs); err != nil {
				t.Fatalf("%v\n%s", err, errs.String())
			}
			var report map[string]any
			if err := json.Unmarshal(out.Bytes(), &report); err != nil {
				t.Fatal(err)
			}
			for _, side := range []string{"stock", "meridian", "ratio"} {
				figures, _ := report[side].(map[string]any)
				for _, key := range []string{"first_sync_ms", "p50_ms", "p99_ms", "last_ms", "cpu_ms_per_change", "alloc_bytes_per_change", "heap_bytes_per_client"} {
					if v, ok := figures[key].(float64); !ok || v == 0 {
						t.Errorf("%s.%s is %v", side, key, figures[key])
					}
				}
			}
		})
	}
}

func TestOnlyTouchedViewpointsAreChanged(t *testing.T) {
	var out, errs bytes.Buffer
	args := []string{"-clients", "4", "-viewpoints", "2", "-touch", "1", "-services", "3", "-endpoints", "2", "-changes", "2", "-skip-stock", "-o", "table"}
	if err := run(t.Context(), args, &out, &errs); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	if !strings.Contains(out.String(), "2 viewpoints (1 touched)") {
		t.Error(out.String())
	}
}

func TestAllClientsComeBackFromAStorm(t *testing.T) {
	var out, errs bytes.Buffer
	args := []string{"-clients", "20", "-viewpoints", "2", "-services", "3", "-endpoints", "2", "-changes", "1", "-skip-stock", "-storm"}
	if err := run(t.Context(), args, &out, &errs); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var report result
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if report.Meridian.StormLast <= 0 || report.Meridian.StormPeak <= 0 {
		t.Errorf("%+v", report.Meridian)
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-protocol", "rest"}, {"-o", "xml"}, {"-storm", "-protocol", "sotw"}, {"-clients", "0"}, {"-viewpoints", "9", "-clients", "3"}, {"-nonsense"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
			t.Errorf("%v were taken", args)
		}
	}
}
