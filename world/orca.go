package world

import "time"

// Mean is the average of Count values that sum to Sum.
type Mean struct {
	Sum   float64
	Count uint64
}

// Value is the average; ok is false where there are no values.
func (m Mean) Value() (v float64, ok bool) {
	if m.Count == 0 {
		return 0, false
	}
	return m.Sum / float64(m.Count), true
}

// Plus is the average of the values of both.
func (m Mean) Plus(o Mean) Mean { return Mean{m.Sum + o.Sum, m.Count + o.Count} }

// ServerLoad is what servers said of themselves in their responses (Open Request Cost Aggregation), as proxies reported it: each an
// average over the requests that carried it.
type ServerLoad struct {
	// CPU and Memory are the used parts, 0 to 1; Application is what the server itself counts as such, and may be over 1.
	CPU, Memory, Application Mean
	// KVCacheUse is the used part of the KV cache, 0 to 1, and Waiting the requests in the queue, by the names that vLLM has for them.
	KVCacheUse, Waiting Mean
}

// Plus is the load that both say together.
func (l ServerLoad) Plus(o ServerLoad) ServerLoad {
	return ServerLoad{l.CPU.Plus(o.CPU), l.Memory.Plus(o.Memory), l.Application.Plus(o.Application), l.KVCacheUse.Plus(o.KVCacheUse), l.Waiting.Plus(o.Waiting)}
}

// PoolLoad is what a pool's servers said of themselves last.
type PoolLoad struct {
	ServerLoad
	// At is when it was reported; zero when it never was.
	At time.Time
}
