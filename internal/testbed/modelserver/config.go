package modelserver

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Config configures a Server.
type Config struct {
	// Address is a loopback address; port 0 takes any that is free. Required.
	Address netip.AddrPort
	// Name is in each answer: as system_fingerprint and in the header x-served-by. Required.
	Name string
	// Models are the names that are served. The first is the label model_name of the metrics, as with vLLM. Required.
	Models []string

	// Slots is how many sequences run at a time (vLLM's max_num_seqs). Default 256, as vLLM's.
	Slots int
	// MaxQueue is how many requests may wait besides those that run; one more is answered 429. vLLM itself queues
	// without limit, which is what 0 means; those who run it behind a gateway commonly limit it.
	MaxQueue int
	// PrefillRate is how many tokens of prompts are computed in a second. Default 10,000.
	PrefillRate float64
	// TimePerOutputToken is how long a step takes in which one sequence runs alone. Default 10ms.
	TimePerOutputToken time.Duration
	// BatchSlowdown is by how much of TimePerOutputToken a step gets longer with each further sequence. Default 0.01.
	BatchSlowdown float64
	// StepTokens is how many tokens one step computes at most (vLLM's max_num_batched_tokens). Default 2048.
	StepTokens int
	// KVBlocks of BlockSize tokens are the KV cache; a request that can't fit in it is answered 400. Default 27,102
	// blocks of 16 tokens: what an 8B model leaves of 80 GB.
	KVBlocks, BlockSize int
	// OutputTokens is the length of an answer whose request sets no limit. Default 64.
	OutputTokens int
	// Speed divides all times. Default 1.
	Speed float64

	// LegacyMetrics exports the KV cache's use by its name until vLLM 0.10, vllm:gpu_cache_usage_perc.
	LegacyMetrics bool
	// Seed chooses the words of the answers.
	Seed uint64
	// Keep is how many requests Requests remembers. Default 256.
	Keep int
}

// withDefaults fills in what is zero, and refuses what makes no sense.
func (c Config) withDefaults() (Config, error) {
	if c.Name == "" {
		return c, errors.New("model server: Config.Name is required")
	}
	if len(c.Models) == 0 || slices.Contains(c.Models, "") {
		return c, fmt.Errorf("model server %s: Config.Models needs names of models, got %q", c.Name, c.Models)
	}
	c.Models = slices.Clone(c.Models)
	setDefault(&c.Slots, 256)
	setDefault(&c.PrefillRate, 10_000)
	setDefault(&c.TimePerOutputToken, 10*time.Millisecond)
	setDefault(&c.BatchSlowdown, 0.01)
	setDefault(&c.StepTokens, 2048)
	setDefault(&c.KVBlocks, 27_102)
	setDefault(&c.BlockSize, 16)
	setDefault(&c.OutputTokens, 64)
	setDefault(&c.Speed, 1)
	setDefault(&c.Keep, 256)
	least := min(float64(c.Slots), float64(c.MaxQueue), c.PrefillRate, float64(c.TimePerOutputToken), c.BatchSlowdown,
		float64(c.StepTokens), float64(c.KVBlocks), float64(c.BlockSize), float64(c.OutputTokens), c.Speed, float64(c.Keep))
	if !(least >= 0) {
		return c, fmt.Errorf("model server %s: a number in Config is negative", c.Name)
	}
	return c, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// capacity is how many tokens fit in the KV cache.
func (c Config) capacity() int { return c.KVBlocks * c.BlockSize }
