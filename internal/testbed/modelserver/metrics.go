package modelserver

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are those of vLLM that say something about load, by its names and with its buckets.
type metrics struct {
	handler                       http.Handler
	firstToken, perToken, whole   prometheus.Observer
	promptTokens, generatedTokens prometheus.Counter
	succeeded                     *prometheus.CounterVec // by finished_reason
}

var (
	firstTokenBuckets = []float64{
		.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
	}
	perTokenBuckets = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	wholeBuckets    = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
)

func newMetrics(c Config, e *engine) *metrics {
	registry := prometheus.NewRegistry()
	own := prometheus.WrapRegistererWith(prometheus.Labels{"model_name": c.Models[0], "engine": "0"}, registry)
	registerEngine(own, c, e)
	prometheus.WrapRegistererWith(prometheus.Labels{"engine": "0"}, registry).MustRegister(cacheInfo(c))

	histogram := func(name, help string, buckets []float64) prometheus.Observer {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		own.MustRegister(h)
		return h
	}
	counter := func(name, help string) prometheus.Counter {
		n := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		own.MustRegister(n)
		return n
	}
	m := &metrics{
		handler:         promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		firstToken:      histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", firstTokenBuckets),
		perToken:        histogram("vllm:time_per_output_token_seconds", "Histogram of time per output token in seconds.", perTokenBuckets),
		whole:           histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", wholeBuckets),
		promptTokens:    counter("vllm:prompt_tokens_total", "Number of prefill tokens processed."),
		generatedTokens: counter("vllm:generation_tokens_total", "Number of generation tokens processed."),
		succeeded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm:request_success_total", Help: "Count of successfully processed requests.",
		}, []string{"finished_reason"}),
	}
	own.MustRegister(m.succeeded)
	return m
}

// registerEngine exports what the engine is doing at the time of the scrape.
func registerEngine(to prometheus.Registerer, c Config, e *engine) {
	cacheUse := "vllm:kv_cache_usage_perc"
	if c.LegacyMetrics {
		cacheUse = "vllm:gpu_cache_usage_perc"
	}
	gauge := func(name, help string, value func(stats) float64) {
		opts := prometheus.GaugeOpts{Name: name, Help: help}
		to.MustRegister(prometheus.NewGaugeFunc(opts, func() float64 { return value(e.stats()) }))
	}
	gauge("vllm:num_requests_running", "Number of requests in model execution batches.",
		func(s stats) float64 { return float64(s.running) })
	gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.",
		func(s stats) float64 { return float64(s.waiting) })
	gauge(cacheUse, "KV-cache usage. 1 means 100 percent usage.",
		func(s stats) float64 { return s.kvCacheUse })
	to.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "vllm:num_preemptions_total", Help: "Cumulative number of preemption from the engine.",
	}, func() float64 { return float64(e.stats().preemptions) }))
}

func cacheInfo(c Config) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "vllm:cache_config_info", Help: "Information of the LLMEngine CacheConfig.",
		ConstLabels: prometheus.Labels{
			"block_size": strconv.Itoa(c.BlockSize), "num_gpu_blocks": strconv.Itoa(c.KVBlocks),
			"cache_dtype": "auto", "enable_prefix_caching": "False",
		},
	}, func() float64 { return 1 })
}

// sawFirst counts a request whose prompt is done.
func (m *metrics) sawFirst(s *sequence) {
	m.firstToken.Observe(s.first.Sub(s.submitted).Seconds())
	m.promptTokens.Add(float64(s.prompt))
}

// sawLast counts a request that is done, by why it ended.
func (m *metrics) sawLast(s *sequence, reason string) {
	if s.output > 1 {
		m.perToken.Observe((s.last.Sub(s.first) / time.Duration(s.output-1)).Seconds())
	}
	m.whole.Observe(s.last.Sub(s.submitted).Seconds())
	m.succeeded.WithLabelValues(reason).Inc()
}
