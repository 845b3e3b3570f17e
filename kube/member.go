package kube

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// member is one member cluster: its access, what is wanted of it, and what it has said.
type member struct {
	// Set once.
	cluster policies.ClusterName
	reach   policies.Kubernetes
	config  *Config
	log     *slog.Logger
	census  *census       // nil: accelerators are not counted
	wake    chan struct{} // holds one token while something else is wanted

	mu      sync.Mutex
	sources map[world.PoolKey]policies.PoolSource // under mu: what is wanted
	byOwner map[object][]world.PoolKey            // under mu: the pools that want an object
	slices  sliceSet                              // under mu
	pools   poolSet                               // under mu
	heard   time.Time                             // under mu: when the API server last answered; zero when it never did
	stale   bool                                  // under mu: that is too long ago for readiness to count
	failing map[string]error                      // under mu: why objects can't be read, by what reads them
}

func newMember(cluster policies.ClusterName, reach policies.Kubernetes, config *Config) *member {
	m := &member{cluster: cluster, reach: reach, config: config, log: config.Log.With("cluster", string(cluster)),
		wake: make(chan struct{}, 1), failing: map[string]error{}}
	if config.Counted != nil && reach.Accelerators.Counted() {
		m.census = newCensus(reach.Accelerators)
	}
	return m
}

// want says which pools are to be read from which objects. What is known of those that are new is told at once.
func (m *member) want(sources map[world.PoolKey]policies.PoolSource) {
	m.mu.Lock()
	before := m.sources
	m.sources, m.byOwner = sources, map[object][]world.PoolKey{}
	for _, key := range slices.SortedFunc(maps.Keys(sources), world.PoolKey.Compare) {
		from := sources[key]
		m.byOwner[objectOf(&from)] = append(m.byOwner[objectOf(&from)], key)
		if before[key] != from {
			m.tell(key)
		}
	}
	m.mu.Unlock()
	m.poke()
}

// poke has what is read looked over: something else may be wanted.
func (m *member) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// tell hands on which endpoints a pool has, if that is known. The caller holds mu.
func (m *member) tell(key world.PoolKey) {
	m.census.changed()
	from := m.sources[key]
	found, ok := m.pools.endpoints(objectOf(&from))
	if from.Kind != policies.FromInferencePool {
		found, ok = m.slices.endpoints(objectOf(&from), from.Port), m.slices.listed
	}
	if !ok {
		return
	}
	if m.stale {
		for i := range found {
			found[i].Condition = world.Unsaid
		}
	}
	m.config.Found(world.PoolFound{Pool: key, Endpoints: found})
}

// tellOf hands on what the pools that want some objects have. The caller holds mu.
func (m *member) tellOf(touched []object) {
	for _, o := range touched {
		for _, key := range m.byOwner[o] {
			m.tell(key)
		}
	}
}

// tellAll hands on what all pools have. The caller holds mu.
func (m *member) tellAll() {
	for _, key := range slices.SortedFunc(maps.Keys(m.sources), world.PoolKey.Compare) {
		m.tell(key)
	}
}

// run reads the cluster until ctx ends: again and again a session with the access of now.
func (m *member) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { m.age(ctx) })
	if m.census != nil {
		running.Go(func() { m.count(ctx) })
	}
	for steps := backoff; ctx.Err() == nil; {
		a, err := readAccess(ctx, &m.reach, m.config.Own)
		if err == nil {
			err = m.session(ctx, a)
		}
		if err == nil { // the access is another one
			steps = backoff
			continue
		}
		m.fails("access", err)
		pause(ctx, steps.Step())
	}
}

// session reads with one access, until that changes or ctx ends; both are no error.
func (m *member) session(ctx context.Context, a access) error {
	c, err := a.rest(&m.reach)
	if err != nil {
		return err
	}
	client, err := connect(c)
	if err != nil {
		return err
	}
	m.fails("access", nil)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { m.heartbeat(ctx, client.typed) })
	running.Go(func() { m.read(ctx, client) })
	m.untilAccessChanges(ctx, a)
	return nil
}

// untilAccessChanges waits until the access is another one, or ctx ends. One that can't be read for a while changes nothing.
func (m *member) untilAccessChanges(ctx context.Context, a access) {
	for {
		// Not all at once: a hundred kubeconfigs in Secrets are a hundred requests.
		pause(ctx, m.config.Reread/2+rand.N(m.config.Reread))
		now, err := readAccess(ctx, &m.reach, m.config.Own)
		if ctx.Err() != nil {
			return
		}
		m.fails("access", err)
		if err == nil && now != a {
			m.log.Info("the access to a member cluster has changed: connecting anew")
			return
		}
	}
}

// heartbeat asks the API server again and again whether it lives: watches say nothing for minutes where nothing happens, and hang
// where it does.
func (m *member) heartbeat(ctx context.Context, client kubernetes.Interface) {
	for ctx.Err() == nil {
		m.beat(ctx, client)
		pause(ctx, m.config.Heartbeat)
	}
}

func (m *member) beat(ctx context.Context, client kubernetes.Interface) {
	limited, cancel := context.WithTimeout(ctx, m.config.Patience)
	defer cancel()
	_, err := client.Discovery().RESTClient().Get().AbsPath("/livez").DoRaw(limited)
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errSilent
	}
	m.fails("heartbeat", err)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.answered()
	}
}

// answered notes that the API server has answered just now. The caller holds mu.
func (m *member) answered() {
	m.heard = time.Now()
	if m.stale {
		m.stale = false
		m.log.Info("member cluster is heard again: its word on readiness counts")
		m.tellAll()
	}
}

// age watches how long ago the API server was heard.
func (m *member) age(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, min(m.reach.StaleAfter.Std()/4, time.Second))
		m.mu.Lock()
		if !m.stale && !m.heard.IsZero() && time.Since(m.heard) > m.reach.StaleAfter.Std() {
			m.stale = true
			m.log.Warn("member cluster has not been heard for too long: its endpoints stay, only probes say how they are", "heard", m.heard, "stale_after", m.reach.StaleAfter.Std())
			m.tellAll()
		}
		m.mu.Unlock()
	}
}

// fails notes why something can't be read, or with nil that it can. Only what is new is logged.
func (m *member) fails(what string, err error) {
	m.mu.Lock()
	before := m.failing[what]
	if err == nil {
		delete(m.failing, what)
	} else {
		m.failing[what] = err
	}
	m.mu.Unlock()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		m.log.Warn("member cluster can't be read: what it said last stays", "what", what, "error", err)
	case err == nil && before != nil:
		m.log.Info("member cluster can be read again", "what", what)
	}
}
