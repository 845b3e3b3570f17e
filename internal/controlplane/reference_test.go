package controlplane

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite docs/reference/metrics.md")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// idle makes a plane that is not run.
func idle(t *testing.T) *Plane {
	t.Helper()
	p, err := New(Config{Policies: t.TempDir(), XDS: "127.0.0.1:0", HTTP: "127.0.0.1:0", Demo: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// description reads what a metric says of itself; client_golang has no other way to ask.
var description = regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)", .*variableLabels: \{([^}]*)\}`)

// described are the metrics that /metrics can show, by name: a row of the reference each.
func described(t *testing.T, p *Plane) map[string]string {
	t.Helper()
	descriptions := make(chan *prometheus.Desc, 1000)
	p.metrics.registry.Describe(descriptions)
	close(descriptions)
	rows := map[string]string{}
	for d := range descriptions {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("not understood: %s", d)
		}
		if strings.HasPrefix(m[1], "meridian_") {
			rows[m[1]] = fmt.Sprintf("| `%s` | %s | %s |\n", m[1], strings.ReplaceAll(m[3], ",", ", "), m[2])
		}
	}
	return rows
}

func TestReferenceListsEveryMetric(t *testing.T) {
	rows := described(t, idle(t))
	names := make([]string, 0, len(rows))
	for name := range rows {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("# Metrics\n\nWhat `/metrics` of the control plane shows, besides those of the Go runtime and the process.\n\n| metric | labels | meaning |\n|---|---|---|\n")
	for _, name := range names {
		b.WriteString(rows[name])
	}
	const path = "../../docs/reference/metrics.md"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("docs/reference/metrics.md is stale, run `make generate` (-want +got):\n%s", diff)
	}
}

func TestMetricsFollowTheNamingRules(t *testing.T) {
	problems, err := testutil.GatherAndLint(idle(t).metrics.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestAlertsAreOnMetricsThatExist(t *testing.T) {
	rows := described(t, idle(t))
	alerts, err := os.ReadFile("../../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`meridian_[a-z_]+`).FindAllString(string(alerts), -1)
	if len(named) == 0 {
		t.Fatal("no metric in the alerts")
	}
	for _, name := range named {
		if rows[strings.TrimSuffix(name, "_bucket")] == "" {
			t.Errorf("there is no metric %s", name)
		}
	}
}

func TestPlaintextIsServedOnLoopbackOnly(t *testing.T) {
	for address, want := range map[string]string{"0.0.0.0:0": "not a loopback address", "localhost:1": "not an IP address", "127.0.0.1": "not an IP address"} {
		_, err := New(Config{Policies: t.TempDir(), XDS: address, HTTP: "127.0.0.1:0", Demo: true})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", address, err, want)
		}
	}
}
