package pipeline

import (
	"time"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// retirement keeps clusters that policies name no more, draining, until their requests have ended.
type retirement struct {
	most   time.Duration // after draining is over, that a cluster is kept for requests that do not end
	wanted *policies.Set // the newest that was handed in
	of     map[policies.ClusterName]retiring
	kept   []policies.ClusterName // that are in force beside wanted, sorted
}

// retiring is when a cluster's draining is over, and when it is let go of whatever it still does.
type retiring struct{ drained, latest time.Time }

// unheard is how long after its draining a cluster counts as busy whatever is reported: reports of what was sent to it last are still on
// their way.
const unheard = 5 * time.Second

// next is the policies to put in force, with those that were handed in, if any; nil where those in force are to stay.
func (r *retirement) next(w *world.World, handed *policies.Set, now time.Time) *policies.Set {
	inForce := w.Policies()
	if handed != nil {
		r.wanted = handed
		r.begin(inForce, now)
	}
	if inForce == nil || len(r.of) == 0 {
		r.kept = nil
		return handed
	}
	changed := handed != nil
	for name, of := range r.of {
		if !now.Before(of.latest) || !now.Before(of.drained.Add(unheard)) && !busy(w, name) {
			delete(r.of, name)
			changed = true
		}
	}
	if !changed {
		return nil
	}
	set := r.wanted.WithRetiring(inForce, func(c policies.ClusterName) bool {
		_, ok := r.of[c]
		return ok
	})
	r.kept = nil
	for i := range set.Clusters {
		if name := set.Clusters[i].Metadata.Name; !r.wants(name) {
			r.kept = append(r.kept, name)
		}
	}
	return set
}

func (r *retirement) wants(c policies.ClusterName) bool {
	_, ok := r.wanted.Cluster(c)
	return ok
}

// begin notes which clusters of the policies in force are wanted no more.
func (r *retirement) begin(inForce *policies.Set, now time.Time) {
	if inForce == nil {
		return
	}
	before := r.of
	r.of = map[policies.ClusterName]retiring{}
	for i := range inForce.Clusters {
		c := &inForce.Clusters[i]
		if r.wants(c.Metadata.Name) {
			continue
		}
		drained := now.Add(c.Spec.DrainOver.Std())
		r.of[c.Metadata.Name] = retiring{drained, drained.Add(r.most)}
		if since, ok := before[c.Metadata.Name]; ok {
			r.of[c.Metadata.Name] = since
		}
	}
}

// busy says whether requests are under way in a cluster, as far as proxies have reported.
func busy(w *world.World, cluster policies.ClusterName) bool {
	for i := range w.Policies().Services {
		for _, part := range w.DemandParts(w.Policies().Services[i].Metadata.Name) {
			if part.Cluster == cluster && part.Demand.InFlight > 0 {
				return true
			}
		}
	}
	return false
}
