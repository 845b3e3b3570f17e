package scrape_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/meridian-mesh/meridian/health/scrape"
	"github.com/meridian-mesh/meridian/world"
)

func TestParseReadsWhatVLLMExports(t *testing.T) {
	text, err := os.ReadFile("testdata/vllm.prom")
	if err != nil {
		t.Fatal(err)
	}
	want := world.Load{Running: 21, Waiting: 3, KVCacheUse: 0.4375}
	if got, err := scrape.Parse(bytes.NewReader(text)); err != nil || got != want {
		t.Errorf("load is %+v, %v; want %+v", got, err, want)
	}
}

// parseCases are answers, and the load or the error that each gives; the error also says something.
var parseCases = []struct {
	name, text string
	want       world.Load
	err        error
	says       string
}{
	{
		name: "idle",
		text: "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0\n",
	},
	{
		name: "the older name of the KV cache, and no newline at the end",
		text: "vllm:num_requests_running 1\nvllm:num_requests_waiting 2\nvllm:gpu_cache_usage_perc 0.5",
		want: world.Load{Running: 1, Waiting: 2, KVCacheUse: 0.5},
	},
	{
		name: "both names: the current one counts",
		text: "vllm:gpu_cache_usage_perc 0.9\nvllm:num_requests_running 1\nvllm:num_requests_waiting 2\nvllm:kv_cache_usage_perc 0.5\n",
		want: world.Load{Running: 1, Waiting: 2, KVCacheUse: 0.5},
	},
	{
		name: "as relayed, with underscores",
		text: "vllm_num_requests_running{model_name=\"m\"} 1\nvllm_num_requests_waiting 2\nvllm_kv_cache_usage_perc 0.5\n",
		want: world.Load{Running: 1, Waiting: 2, KVCacheUse: 0.5},
	},
	{
		name: "both forms: not added",
		text: "vllm_num_requests_running 4\nvllm:num_requests_running 4\nvllm:num_requests_waiting 2\nvllm:kv_cache_usage_perc 0.5\n",
		want: world.Load{Running: 4, Waiting: 2, KVCacheUse: 0.5},
	},
	{
		name: "timestamps, carriage-return free blanks, labels with braces and quotes",
		text: "vllm:num_requests_running{a=\"} \\\" \\n\"} 4 1700000000000\nvllm:num_requests_waiting\t2\nvllm:kv_cache_usage_perc 5e-1\n",
		want: world.Load{Running: 4, Waiting: 2, KVCacheUse: 0.5},
	},
	{
		name: "other metrics may be nonsense",
		text: "{{{\nvllm:other NaN NaN NaN\nvllm:num_requests_running 4\nvllm:num_requests_waiting 2\nvllm:kv_cache_usage_perc 0.5\n",
		want: world.Load{Running: 4, Waiting: 2, KVCacheUse: 0.5},
	},
	{name: "empty", err: scrape.ErrMissing, says: "vllm:num_requests_running"},
	{name: "a page", text: "<html>not found</html>", err: scrape.ErrMissing, says: "metrics path"},
	{
		name: "no waiting, only by reason",
		text: "vllm:num_requests_running 1\nvllm:num_requests_waiting_by_reason{reason=\"capacity\"} 2\nvllm:kv_cache_usage_perc 0\n",
		err:  scrape.ErrMissing, says: "vllm:num_requests_waiting",
	},
	{
		name: "no KV cache",
		text: "vllm:num_requests_running 1\nvllm:num_requests_waiting 2\n",
		err:  scrape.ErrMissing, says: "vllm:gpu_cache_usage_perc",
	},
	{
		name: "NaN requests",
		text: "vllm:num_requests_running NaN\nvllm:num_requests_waiting 2\nvllm:kv_cache_usage_perc 0.5\n",
		err:  scrape.ErrImpossible, says: "vllm:num_requests_running is NaN",
	},
	{
		name: "negative requests",
		text: "vllm:num_requests_running 1\nvllm:num_requests_waiting -2\nvllm:kv_cache_usage_perc 0.5\n",
		err:  scrape.ErrImpossible, says: "vllm:num_requests_waiting is -2",
	},
	{
		name: "endless requests",
		text: "vllm:num_requests_running +Inf\nvllm:num_requests_waiting 2\nvllm:kv_cache_usage_perc 0.5\n",
		err:  scrape.ErrImpossible, says: "vllm:num_requests_running is +Inf",
	},
	{
		name: "too many requests together",
		text: "vllm:num_requests_running{e=\"0\"} 9e5\nvllm:num_requests_running{e=\"1\"} 9e5\nvllm:num_requests_waiting 2\nvllm:kv_cache_usage_perc 0.5\n",
		err:  scrape.ErrImpossible, says: "sums to 1.8e+06",
	},
	{
		name: "a percentage",
		text: "vllm:num_requests_running 1\nvllm:num_requests_waiting 2\nvllm:kv_cache_usage_perc 50\n",
		err:  scrape.ErrImpossible, says: "vllm:kv_cache_usage_perc is 50",
	},
	{
		name: "NaN in one engine of two",
		text: "vllm:num_requests_running 1\nvllm:num_requests_waiting 2\nvllm:kv_cache_usage_perc{e=\"0\"} 0.1\nvllm:kv_cache_usage_perc{e=\"1\"} NaN\n",
		err:  scrape.ErrImpossible, says: "vllm:kv_cache_usage_perc is NaN",
	},
	{name: "cut off in a line", text: "vllm:num_requests_running{engine=\"0", err: scrape.ErrMalformed},
	{name: "a word for a number", text: "vllm:num_requests_running many\n", err: scrape.ErrMalformed, says: "many"},
	{name: "a long line", text: strings.Repeat("x", scrape.MaxLineBytes+1), err: scrape.ErrTooLarge, says: "line"},
	{name: "a long answer", text: strings.Repeat(strings.Repeat("x", 1023)+"\n", scrape.MaxBytes/1024+1), err: scrape.ErrTooLarge},
}

func TestParse(t *testing.T) {
	for _, c := range parseCases {
		t.Run(c.name, func(t *testing.T) {
			got, err := scrape.Parse(strings.NewReader(c.text))
			if got != c.want || !errors.Is(err, c.err) {
				t.Fatalf("load is %+v, %v; want %+v, %v", got, err, c.want, c.err)
			}
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error %q does not say %q", err, c.says)
			}
		})
	}
}

func TestParseGivesTheReadersError(t *testing.T) {
	broken := errors.New("connection reset")
	text := "vllm:num_requests_running 1\nvllm:num_requests_waiting 2\nvllm:kv_cache_usage_perc 0.5\n"
	if _, err := scrape.Parse(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("an answer that broke off gave the error %v", err)
	}
}

func FuzzParse(f *testing.F) {
	seed, err := os.ReadFile("testdata/vllm.prom")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte("vllm:num_requests_running 1\nvllm:num_requests_waiting 2\nvllm:gpu_cache_usage_perc 0.5\n"))
	f.Add([]byte("vllm:num_requests_running{a=\"} \\\" \\n\"} 4 1700000000000\nvllm_num_requests_waiting\t2e0\nvllm:kv_cache_usage_perc{} 0x1p-1\n"))
	f.Add([]byte("vllm:num_requests_running{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := scrape.Parse(bytes.NewReader(text))
		switch {
		case err != nil && got != world.Load{}:
			t.Errorf("a load %+v beside the error %v", got, err)
		case got.Running < 0 || got.Running > 1e6 || got.Waiting < 0 || got.Waiting > 1e6:
			t.Errorf("impossible requests: %+v", got)
		case !(got.KVCacheUse >= 0 && got.KVCacheUse <= 1):
			t.Errorf("impossible KV-cache use: %+v", got)
		}
		if again, errAgain := scrape.Parse(bytes.NewReader(text)); got != again || (err == nil) != (errAgain == nil) {
			t.Errorf("the same text again gives %+v, %v after %+v, %v", again, errAgain, got, err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text, err := os.ReadFile("testdata/vllm.prom")
	if err != nil {
		b.Fatal(err)
	}
	// A vLLM server's answer is some hundred lines of histograms, and the wanted ones among them.
	histogram := strings.Repeat("vllm:e2e_request_latency_seconds_bucket{engine=\"0\",le=\"0.3\",model_name=\"m\"} 17.0\n", 600)
	answer := append([]byte(histogram), text...)
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := scrape.Parse(bytes.NewReader(answer)); err != nil {
			b.Fatal(err)
		}
	}
}
