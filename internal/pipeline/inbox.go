package pipeline

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/meridian-mesh/meridian/health"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// inbox holds what has come in since the last cycle: the newest value per source and key.
type inbox struct {
	// wake holds one token while something is pending. Set once.
	wake chan struct{}

	mu      sync.Mutex
	pending batch // under mu
}

// batch is what one cycle works in.
type batch struct {
	// since is when the oldest part came in; zero while the batch is empty.
	since      time.Time
	policies   *policies.Set
	viewpoints map[world.ViewpointID]world.Viewpoint
	pools      map[world.PoolKey]world.PoolFound
	counts     map[policies.ClusterName]world.AcceleratorsCounted
	facts      map[factKey]world.Fact
	signals    map[signalKey]health.Signal
	refusals   map[world.ViewpointID]Refusal
}

// signalKey tells signals apart: a later one with an equal key replaces an earlier one.
type signalKey struct {
	kind     string
	endpoint world.EndpointKey
	demand   world.DemandKey
	cluster  policies.ClusterName
}

// factKey tells facts that edges state themselves apart.
type factKey struct{ from, to policies.RegionName }

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// put changes the pending batch and wakes the loop. It never blocks on the loop.
func (i *inbox) put(now time.Time, change func(*batch)) {
	i.mu.Lock()
	if i.pending.since.IsZero() {
		i.pending.since = now
	}
	change(&i.pending)
	i.mu.Unlock()
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// take hands over the pending batch.
func (i *inbox) take() batch {
	i.mu.Lock()
	defer i.mu.Unlock()
	taken := i.pending
	i.pending = batch{}
	return taken
}

func (b *batch) addSignal(s health.Signal) {
	if b.signals == nil {
		b.signals = map[signalKey]health.Signal{}
	}
	b.signals[keyOf(s)] = s
}

func (b *batch) addViewpoint(v world.Viewpoint) {
	if b.viewpoints == nil {
		b.viewpoints = map[world.ViewpointID]world.Viewpoint{}
	}
	b.viewpoints[v.ID()] = v
}

func (b *batch) addPool(f world.PoolFound) {
	if b.pools == nil {
		b.pools = map[world.PoolKey]world.PoolFound{}
	}
	b.pools[f.Pool] = f
}

func (b *batch) addCount(f world.AcceleratorsCounted) {
	if b.counts == nil {
		b.counts = map[policies.ClusterName]world.AcceleratorsCounted{}
	}
	b.counts[f.Cluster] = f
}

func (b *batch) addRoundTrip(f world.RoundTripMeasured) {
	if b.facts == nil {
		b.facts = map[factKey]world.Fact{}
	}
	b.facts[factKey{f.From, f.To}] = f
}

func keyOf(s health.Signal) signalKey {
	switch s := s.(type) {
	case health.Probed:
		return signalKey{kind: "probe", endpoint: s.Endpoint}
	case health.Scraped:
		return signalKey{kind: "scrape", endpoint: s.Endpoint}
	case health.Reported:
		return signalKey{kind: "report", demand: world.DemandKey{Viewpoint: s.Viewpoint, Service: s.Service, Class: s.Class}, cluster: s.Cluster}
	}
	return signalKey{}
}

// orderedFacts are the batch's facts in an order that does not depend on maps: policies first, since other facts are
// about what policies name.
func (b *batch) orderedFacts(now time.Time) []world.Fact {
	facts := []world.Fact{world.TimeAdvanced{Now: now}}
	if b.policies != nil {
		facts = append(facts, world.PoliciesLoaded{Set: b.policies})
	}
	for _, id := range slices.Sorted(maps.Keys(b.viewpoints)) {
		facts = append(facts, world.ViewpointSeen{Viewpoint: b.viewpoints[id]})
	}
	for _, key := range slices.SortedFunc(maps.Keys(b.pools), world.PoolKey.Compare) {
		facts = append(facts, b.pools[key])
	}
	for _, cluster := range slices.Sorted(maps.Keys(b.counts)) {
		facts = append(facts, b.counts[cluster])
	}
	keys := slices.SortedFunc(maps.Keys(b.facts), func(x, y factKey) int {
		return strings.Compare(string(x.from)+"/"+string(x.to), string(y.from)+"/"+string(y.to))
	})
	for _, k := range keys {
		facts = append(facts, b.facts[k])
	}
	return facts
}

// orderedSignals are the batch's signals in an order that does not depend on maps.
func (b *batch) orderedSignals() []health.Signal {
	keys := slices.SortedFunc(maps.Keys(b.signals), compareSignals)
	signals := make([]health.Signal, len(keys))
	for i, k := range keys {
		signals[i] = b.signals[k]
	}
	return signals
}

func compareSignals(x, y signalKey) int {
	if c := strings.Compare(x.kind, y.kind); c != 0 {
		return c
	}
	if c := x.endpoint.Compare(y.endpoint); c != 0 {
		return c
	}
	if c := x.demand.Compare(y.demand); c != 0 {
		return c
	}
	return strings.Compare(string(x.cluster), string(y.cluster))
}
