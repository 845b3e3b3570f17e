package scrape

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/meridian-mesh/meridian/world"
)

// MaxBytes is the largest answer that is read, MaxLineBytes the longest line in it.
const (
	MaxBytes     = 8 << 20
	MaxLineBytes = 64 << 10
)

// What is wrong with an answer that is no load. Errors of Parse name the metric and the value besides.
var (
	// ErrTooLarge: more than MaxBytes, or a line longer than MaxLineBytes.
	ErrTooLarge = errors.New("metrics are too large")
	// ErrMissing: a metric that every vLLM server exports is not there.
	ErrMissing = errors.New("metric is missing")
	// ErrMalformed: a line is not in the Prometheus text format.
	ErrMalformed = errors.New("metrics are malformed")
	// ErrImpossible: a value that the quantity can't have.
	ErrImpossible = errors.New("metric has an impossible value")
)

// The names that vLLM gives its gauges, the current one first. Of each, the form with "_" in place of ":" stands after
// it: that is what some relays make of them. The first name that is there counts; they are never added.
var (
	running    = []string{"vllm:num_requests_running", "vllm_num_requests_running"}
	waiting    = []string{"vllm:num_requests_waiting", "vllm_num_requests_waiting"}
	kvCacheUse = []string{
		"vllm:kv_cache_usage_perc", "vllm_kv_cache_usage_perc",
		"vllm:gpu_cache_usage_perc", "vllm_gpu_cache_usage_perc", // the name until vLLM 0.10
	}
	wantedNames = setOf(running, waiting, kvCacheUse)
)

func setOf(lists ...[]string) map[string]bool {
	set := map[string]bool{}
	for _, name := range slices.Concat(lists...) {
		set[name] = true
	}
	return set
}

// mostRequests is more than any server runs: a larger number is a broken one.
const mostRequests = 1e6

// Parse reads a load out of metrics in the Prometheus text format. One server has a series for each model and engine:
// requests are summed; the KV-cache use is that of the fullest engine, since a request may land on any. At is not set.
//
// It reads no more than MaxBytes, and looks only at the lines of metrics that it wants, so that what else a server
// exports costs little and can't spoil the rest. It fails with one of the errors of this package, or with that of r.
func Parse(r io.Reader) (world.Load, error) {
	lines, err := wanted(r)
	if err != nil {
		return world.Load{}, err
	}
	samples, err := samplesOf(lines)
	if err != nil {
		return world.Load{}, err
	}
	var l world.Load
	if l.Running, err = count(samples, running); err != nil {
		return world.Load{}, err
	}
	if l.Waiting, err = count(samples, waiting); err != nil {
		return world.Load{}, err
	}
	if l.KVCacheUse, err = fraction(samples, kvCacheUse); err != nil {
		return world.Load{}, err
	}
	return l, nil
}

// wanted keeps the lines that Parse looks at.
func wanted(r io.Reader) ([]byte, error) {
	limited := &io.LimitedReader{R: r, N: MaxBytes + 1}
	scanner := bufio.NewScanner(limited)
	scanner.Buffer(make([]byte, 0, 4096), MaxLineBytes)
	var kept []byte
	for scanner.Scan() {
		if line := scanner.Bytes(); isWanted(line) {
			kept = append(append(kept, line...), '\n')
		}
	}
	switch err := scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%w: a line has more than %d bytes", ErrTooLarge, MaxLineBytes)
	case err != nil:
		return nil, err
	case limited.N == 0:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, MaxBytes)
	}
	return kept, nil
}

// isWanted says whether a line is a sample of a metric that Parse reads.
func isWanted(line []byte) bool {
	end := bytes.IndexAny(line, "{ \t")
	return end >= 0 && wantedNames[string(line[:end])]
}

// samplesOf reads the values of all series by the name of their metric.
func samplesOf(lines []byte) (map[string][]float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(lines))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	samples := make(map[string][]float64, len(families))
	for name, family := range families {
		for _, m := range family.GetMetric() {
			samples[name] = append(samples[name], m.GetUntyped().GetValue())
		}
	}
	return samples, nil
}

// pick is the first name that has samples, and they.
func pick(samples map[string][]float64, names []string) (string, []float64, error) {
	for _, name := range names {
		if values := samples[name]; len(values) > 0 {
			return name, values, nil
		}
	}
	return "", nil, fmt.Errorf("%w: %s: is this the metrics path of a vLLM server?", ErrMissing, strings.Join(names, " or "))
}

// count sums requests.
func count(samples map[string][]float64, names []string) (int, error) {
	name, values, err := pick(samples, names)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, v := range values {
		if !(v >= 0 && v <= mostRequests) {
			return 0, fmt.Errorf("%w: %s is %v, not a number of requests", ErrImpossible, name, v)
		}
		sum += v
	}
	if sum > mostRequests {
		return 0, fmt.Errorf("%w: %s sums to %v, not a number of requests", ErrImpossible, name, sum)
	}
	return int(math.Round(sum)), nil
}

// fraction is the largest value, each being 0 to 1.
func fraction(samples map[string][]float64, names []string) (float64, error) {
	name, values, err := pick(samples, names)
	if err != nil {
		return 0, err
	}
	most := 0.0
	for _, v := range values {
		if !(v >= 0 && v <= 1) {
			return 0, fmt.Errorf("%w: %s is %v, not a fraction of 0 to 1", ErrImpossible, name, v)
		}
		most = max(most, v)
	}
	return most, nil
}
