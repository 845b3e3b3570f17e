package kube

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Config configures a Watcher.
type Config struct {
	// Found is told which endpoints a pool has, whenever they may be others, from the goroutines of member clusters. It must not
	// block. Required.
	Found func(world.PoolFound)
	// Counted is told what accelerators a cluster has, and what its pools hold of them, whenever that may be different. It must not block.
	// Nil: nothing is counted.
	Counted func(world.AcceleratorsCounted)
	// Recount is how much time there is between two counts of a cluster at least. Default 1s.
	Recount time.Duration
	// Own is the cluster in which the control plane runs, where Secrets with kubeconfigs are. Nil: it runs in none.
	Own kubernetes.Interface
	// Heartbeat is how often each API server is asked whether it lives. Default 2s.
	Heartbeat time.Duration
	// Patience is how long it may take to answer that. Default 5s.
	Patience time.Duration
	// Reread is how often, about, kubeconfigs are read again, to find one that has changed. Default 5s.
	Reread time.Duration
	// Log defaults to slog's default.
	Log *slog.Logger
}

// Watcher reads all member clusters. Make one with New; its methods but Run may be called from any goroutine, before and while it
// runs.
type Watcher struct {
	// Set once.
	config Config
	wake   chan struct{} // holds one token while other policies are in force

	// Only by Run.
	goroutines sync.WaitGroup

	mu      sync.Mutex
	set     *policies.Set                     // under mu: the policies in force
	members map[policies.ClusterName]*running // under mu: written by Run only
}

// running is a member that is being read.
type running struct {
	*member
	end context.CancelFunc
}

// New makes a Watcher that reads nothing yet.
func New(config Config) (*Watcher, error) {
	if config.Found == nil {
		return nil, errors.New("kube: Config.Found is required")
	}
	config.Heartbeat = cmp.Or(config.Heartbeat, 2*time.Second)
	config.Patience = cmp.Or(config.Patience, 5*time.Second)
	config.Reread = cmp.Or(config.Reread, 5*time.Second)
	config.Recount = cmp.Or(config.Recount, time.Second)
	if config.Log == nil {
		config.Log = slog.Default()
	}
	return &Watcher{config: config, wake: make(chan struct{}, 1), members: map[policies.ClusterName]*running{}}, nil
}

// Update says which policies are in force: they name the clusters, and what is read of each.
func (w *Watcher) Update(set *policies.Set) {
	w.mu.Lock()
	w.set = set
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run reads the clusters until ctx ends. It returns nil then, when all that it started has ended.
func (w *Watcher) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer w.goroutines.Wait()
	defer end()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
			w.reconcile(ctx)
		}
	}
}

// reconcile starts, changes and ends members as the policies say.
func (w *Watcher) reconcile(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sources := sourcesOf(w.set)
	for name, r := range w.members {
		c, ok := w.set.Cluster(name)
		if ok && c.Spec.Kubernetes != nil && reflect.DeepEqual(c.Spec.Kubernetes, &r.reach) {
			continue
		}
		r.want(nil) // so that it tells nothing any more
		r.end()
		delete(w.members, name)
	}
	for i := range w.set.Clusters {
		c := &w.set.Clusters[i]
		if c.Spec.Kubernetes == nil {
			continue
		}
		r := w.members[c.Metadata.Name]
		if r == nil {
			r = w.start(ctx, c)
			w.members[c.Metadata.Name] = r
		}
		r.want(sources[c.Metadata.Name])
	}
}

func (w *Watcher) start(ctx context.Context, c *policies.Cluster) *running {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{newMember(c.Metadata.Name, *c.Spec.Kubernetes, &w.config), cancel}
	w.goroutines.Go(func() { r.run(ctx) })
	return r
}

// sourcesOf are the pools of a set that are read from their clusters.
func sourcesOf(set *policies.Set) map[policies.ClusterName]map[world.PoolKey]policies.PoolSource {
	sources := map[policies.ClusterName]map[world.PoolKey]policies.PoolSource{}
	for i := range set.Services {
		s := &set.Services[i]
		for _, p := range s.Spec.Pools {
			if p.From == nil {
				continue
			}
			if sources[p.Cluster] == nil {
				sources[p.Cluster] = map[world.PoolKey]policies.PoolSource{}
			}
			sources[p.Cluster][world.PoolKey{Service: s.Metadata.Name, Cluster: p.Cluster}] = *p.From
		}
	}
	return sources
}
