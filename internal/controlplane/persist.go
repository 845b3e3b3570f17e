package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
	"github.com/meridian-mesh/meridian/xds/cache"
)

// StaleStatus is a viewpoint whose proxies get what was published before the control plane started, since nothing newer is
// known. It was verified when it was published, against the policies of then.
type StaleStatus struct {
	Viewpoint world.ViewpointID `json:"viewpoint"`
	Published time.Time         `json:"published"`
}

// attachment is what must be known of the policies to serve what is restored: where clusters are, and whose proxies are whose.
type attachment struct {
	Clusters []policies.Cluster `json:"clusters"`
}

// restored is what was in force before the control plane started. It is set once.
type restored struct {
	policies   *policies.Set                           // clusters only; nil: nothing is known
	viewpoints []StaleStatus                           // sorted by viewpoint, stale or not any more
	pools      map[world.PoolKey][]world.FoundEndpoint // what they held; nil once the pipeline was told
}

// restore opens the state folder and publishes what it holds. What is wrong with it is no reason not to serve: it is logged
// and counted.
func (p *Plane) restore() {
	if p.config.StateDir == "" {
		return
	}
	store, found, err := cache.OpenStore(cache.StoreConfig{Dir: p.config.StateDir, OnWrite: p.metrics.stateWritten, Log: p.log})
	if err != nil {
		p.metrics.stateErrors.Inc()
		p.log.Error("what is published is not kept on disk, and nothing is restored", "error", err)
		return
	}
	p.store = store
	if found.Torn > 0 {
		p.log.Warn("the last write to the state folder was interrupted, what was there before it is restored", "bytesIgnored", found.Torn)
	}
	if err := p.publishRestored(found); err != nil {
		p.metrics.stateErrors.Inc()
		p.log.Error("nothing is restored", "error", err)
	}
}

// publishRestored puts in force what the store held, all marked stale. The pipeline is told of the viewpoints, so that all
// of it is made anew as soon as there are policies, whether a proxy has come by then or not.
func (p *Plane) publishRestored(found cache.Contents) error {
	if found.Damage != nil || len(found.Snapshots) == 0 {
		return found.Damage
	}
	var known attachment
	if err := json.Unmarshal(found.Note, &known); err != nil {
		return fmt.Errorf("state folder %s: read where clusters are: %w", p.config.StateDir, err)
	}
	viewpoints := make([]world.Viewpoint, len(found.Snapshots))
	for i, s := range found.Snapshots {
		var err error
		if viewpoints[i], err = world.ParseViewpoint(s.Snapshot.Viewpoint); err != nil {
			return fmt.Errorf("state folder %s: %w", p.config.StateDir, err)
		}
	}
	p.restored.policies, p.restored.pools = &policies.Set{Clusters: known.Clusters}, map[world.PoolKey][]world.FoundEndpoint{}
	for i, s := range found.Snapshots {
		p.pipeline.SeeViewpoint(viewpoints[i])
		p.cache.Restore(s.Snapshot, s.At)
		pools, err := cache.PoolsIn(s.Snapshot)
		if err != nil {
			return fmt.Errorf("state folder %s: %w", p.config.StateDir, err)
		}
		maps.Copy(p.restored.pools, pools)
		p.restored.viewpoints = append(p.restored.viewpoints, StaleStatus{s.Snapshot.Viewpoint, s.At})
	}
	p.log.Warn("until policies are in force, proxies get what was published before", "viewpoints", len(found.Snapshots), "folder", p.config.StateDir)
	return nil
}

// runPipeline runs the loop, and the store until the last snapshot that came out of it is on disk.
func (p *Plane) runPipeline(ctx context.Context) error {
	if p.store == nil {
		return p.pipeline.Run(ctx)
	}
	keeping, end := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error { return p.store.Run(keeping) })
	g.Go(func() error {
		defer end()
		return p.pipeline.Run(ctx)
	})
	return g.Wait()
}

// publish hands a snapshot to the streams, and to the disk.
func (p *Plane) publish(s *xds.Snapshot, since time.Time) {
	p.cache.Publish(s, since)
	if p.store != nil {
		p.store.Save(s, time.Now())
	}
}

// keepPolicies keeps what must be known to serve what is published, and drops what the policies have no cluster for.
func (p *Plane) keepPolicies(set *policies.Set) {
	if p.store == nil {
		return
	}
	note, err := json.Marshal(attachment{set.Clusters})
	if err != nil {
		p.metrics.stateErrors.Inc()
		p.log.Error("where clusters are is not kept on disk", "error", err)
		return
	}
	p.store.Attach(note)
	p.store.Retain(func(id world.ViewpointID) bool {
		v, err := world.ParseViewpoint(id)
		c, ok := set.Cluster(v.Cluster)
		return err == nil && ok && c.Spec.Region == v.Region
	})
}

// clusterOf looks a cluster up in the folder's policies, and then in those in force, where clusters may still retire; while there are
// none, in what was kept of those before.
func (p *Plane) clusterOf(name policies.ClusterName) (*policies.Cluster, bool) {
	set := p.folder.Status().Set
	if inForce := p.State().World.Policies(); set != nil && inForce != nil {
		if c, ok := set.Cluster(name); ok {
			return c, true
		}
		set = inForce
	}
	if set == nil {
		set = p.restored.policies
	}
	if set == nil {
		return nil, false
	}
	return set.Cluster(name)
}

// stale are the viewpoints for which nothing newer than what was restored is published, sorted.
func (p *Plane) stale() []StaleStatus {
	var stale []StaleStatus
	for _, v := range p.restored.viewpoints {
		if now := p.cache.Newest(v.Viewpoint); now != nil && now.Stale {
			stale = append(stale, v)
		}
	}
	return stale
}

// behind is 1 while something that is published is not on disk.
func (p *Plane) behind() int {
	if p.store != nil && !p.store.Behind() {
		return 0
	}
	return 1
}
