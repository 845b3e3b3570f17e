package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/meridian-mesh/meridian/internal/controlplane"
	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
	"github.com/meridian-mesh/meridian/policies"
)

// kubernetesActs are those of a demo whose clusters have real API servers.
func (d *demo) kubernetesActs() []act {
	return []act{
		{"Americans at each gateway", d.nearest},
		{"Pods of fra-1 come and go", d.pods},
		{"A node with GPUs is added to fra-1, cordoned and opened again", d.nodes},
		{"Every API server is killed", d.outage},
		{"Maintenance of fra-1", d.maintenance},
		{"Dublin is taken out of the policies", d.remove},
	}
}

// pods: a pod turns unready, terminates and is deleted, and another is added.
func (d *demo) pods(ctx context.Context) (Check, error) {
	fra := d.mesh.Member("fra-1")
	t := d.send(ctx, "fra-1", american, pace)
	d.watch(ctx, t, 10*time.Second, takenOver("fra-1"))
	var served uint64
	for _, step := range []struct {
		pod  mesh.Pod
		what string
	}{{mesh.PodUnready, "is not ready"}, {mesh.PodReady, "is ready again"}, {mesh.PodTerminating, "terminates"}, {mesh.PodGone, "is gone"}} {
		d.say("  a pod of fra-1 %s", step.what)
		if err := fra.SetPod(ctx, 0, step.pod); err != nil {
			return Check{}, err
		}
		d.watch(ctx, t, time.Second, never)
		served = uint64(fra.Servers()[0].Served())
	}
	d.say("  another is added")
	if err := fra.AddServer(ctx); err != nil {
		return Check{}, err
	}
	d.linger(ctx, t)
	d.linger(ctx, t)
	results := t.end()
	late, added := uint64(fra.Servers()[0].Served())-served, fra.Servers()[servers].Served()
	c := Check{Name: "pods come and go, no caller notices", Sent: len(results), Failed: failed(results), By: by(results)}
	c.Passed = c.Failed == 0 && late == 0 && added > 0
	c.Detail = fmt.Sprintf("%s, %d failed; the pod that went got %d requests after that, the one that came got %d", counts(c.By), c.Failed, late, added)
	return c, nil
}

// nodes: what accelerators there are is counted as it changes.
func (d *demo) nodes(ctx context.Context) (Check, error) {
	fit := func() int64 { return fitIn(d.mesh.Plane().Status(), "fra-1") }
	before, passed := fit(), true
	var seen []string
	for _, step := range []struct {
		node mesh.Node
		more int64
	}{{mesh.Node{Name: "spare", GPUs: 8}, 8}, {mesh.Node{Name: "spare", GPUs: 8, Cordoned: true}, 0}, {mesh.Node{Name: "spare", GPUs: 4}, 4}} {
		if err := d.mesh.Member("fra-1").SetNode(ctx, step.node); err != nil {
			return Check{}, err
		}
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		passed = d.mesh.Until(limited, "GPUs are counted", func() bool { return fit() == before+step.more }) == nil && passed
		cancel()
		seen = append(seen, fmt.Sprint(fit()))
	}
	return Check{Name: "GPUs are counted", Passed: passed, Detail: fmt.Sprintf("%d more replicas fit; with 8 GPUs more, none of them, and 4 of them: %s", before, strings.Join(seen, ", "))}, nil
}

// fitIn is how many more replicas fit in a cluster; -1 where that is not known.
func fitIn(s controlplane.Status, cluster policies.ClusterName) int64 {
	for _, p := range s.Pools {
		if p.Cluster == cluster && p.Replicas != nil {
			return p.Replicas.Fit
		}
	}
	return -1
}

// outage: no API server answers, servers die meanwhile, and it does not matter.
func (d *demo) outage(ctx context.Context) (Check, error) {
	t := d.send(ctx, "fra-1", american, pace)
	before := d.watch(ctx, t, 10*time.Second, takenOver("fra-1"))
	for _, m := range d.mesh.Members() {
		if err := m.Kubernetes().Kill(); err != nil {
			return Check{}, err
		}
	}
	d.linger(ctx, t)
	d.say("  the model servers of fra-1 are killed, and no API server can say so")
	if err := d.mesh.Member("fra-1").KillServers(); err != nil {
		return Check{}, err
	}
	moved := d.watch(ctx, t, 15*time.Second, takenOver("dub-1"))
	d.say("  they are started again, and the API servers as well")
	if err := d.mesh.Member("fra-1").ReviveServers(); err != nil {
		return Check{}, err
	}
	for _, m := range d.mesh.Members() {
		if err := m.Kubernetes().Restart(ctx); err != nil {
			return Check{}, err
		}
	}
	back := d.watch(ctx, t, 20*time.Second, takenOver("fra-1"))
	results := t.end()
	c := Check{Name: "API servers die, requests go on", Sent: len(results), Failed: failed(results), By: by(results)}
	c.Passed = before && moved && back && c.Failed == 0
	c.Detail = fmt.Sprintf("%s, %d failed", counts(c.By), c.Failed)
	return c, nil
}

// maintenance: a cluster is emptied over a time.
func (d *demo) maintenance(ctx context.Context) (Check, error) {
	const over = 5 * time.Second
	t := d.send(ctx, "fra-1", american, pace)
	before := d.watch(ctx, t, 10*time.Second, takenOver("fra-1"))
	began := time.Now()
	d.say("  fra-1 is drained over %v", over)
	if err := d.mesh.Member("fra-1").Drain(over); err != nil {
		return Check{}, err
	}
	moved := d.watch(ctx, t, 20*time.Second, takenOver("dub-1"))
	took := time.Since(began)
	results := t.end()
	c := Check{Name: "a cluster is emptied at its pace", Sent: len(results), Failed: failed(results), By: by(results)}
	c.Passed = before && moved && c.Failed == 0 && took >= over-time.Second
	c.Detail = fmt.Sprintf("%s, %d failed; empty after %.1f s", counts(c.By), c.Failed, took.Seconds())
	return c, nil
}

// remove: a cluster is taken out of the policies while it answers.
func (d *demo) remove(ctx context.Context) (Check, error) {
	t := d.send(ctx, "fra-1", american, pace)
	before := d.watch(ctx, t, 10*time.Second, takenOver("dub-1"))
	if err := d.mesh.Member("dub-1").Remove(); err != nil {
		return Check{}, err
	}
	moved := d.watch(ctx, t, 20*time.Second, takenOver("iad-1"))
	results := t.end()
	c := Check{Name: "a cluster is removed, no caller notices", Sent: len(results), Failed: failed(results), By: by(results)}
	c.Passed = before && moved && c.Failed == 0
	c.Detail = fmt.Sprintf("%s, %d failed", counts(c.By), c.Failed)
	return c, nil
}
