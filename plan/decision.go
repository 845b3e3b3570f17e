package plan

import (
	"cmp"
	"slices"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// Find is the decision for a service's requests of a class from a viewpoint; ok is false where there is none.
func (p *Plan) Find(viewpoint world.ViewpointID, service policies.ServiceName, class world.ClassID) (d *Decision, ok bool) {
	key := &Decision{Viewpoint: viewpoint, Service: service, Class: class}
	i, ok := slices.BinarySearchFunc(p.Decisions, key, (*Decision).compare)
	if !ok {
		return nil, false
	}
	return p.Decisions[i], true
}

// From are the decisions of one viewpoint, sorted by service, then class.
func (p *Plan) From(viewpoint world.ViewpointID) []*Decision {
	lo, _ := slices.BinarySearchFunc(p.Decisions, viewpoint, func(d *Decision, v world.ViewpointID) int { return cmp.Compare(d.Viewpoint, v) })
	hi := lo
	for hi < len(p.Decisions) && p.Decisions[hi].Viewpoint == viewpoint {
		hi++
	}
	return p.Decisions[lo:hi:hi]
}

// Shares are those of the clusters that serve, sorted by cluster.
func (d *Decision) Shares() []world.Share {
	var shares []world.Share
	for _, c := range d.Choices {
		if c.Role == Serving {
			shares = append(shares, world.Share{Cluster: c.Cluster, Parts: c.Share})
		}
	}
	slices.SortFunc(shares, func(a, b world.Share) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return shares
}

// Choice is what became of a cluster; ok is false where it has no pool of the service.
func (d *Decision) Choice(cluster policies.ClusterName) (c *Choice, ok bool) {
	i := slices.IndexFunc(d.Choices, func(c Choice) bool { return c.Cluster == cluster })
	if i < 0 {
		return nil, false
	}
	return &d.Choices[i], true
}

// Servable says whether any cluster that is permitted has an endpoint that may be used: where none has, requests are
// answered with an error rather than sent outside their boundary.
func (d *Decision) Servable() bool {
	return slices.ContainsFunc(d.Choices, func(c Choice) bool { return c.Role != Refused && c.Healthy })
}

func (d *Decision) compare(o *Decision) int {
	return cmp.Or(cmp.Compare(d.Viewpoint, o.Viewpoint), cmp.Compare(d.Service, o.Service), cmp.Compare(d.Class, o.Class))
}

func (d *Decision) equal(o *Decision) bool {
	return d.compare(o) == 0 && slices.EqualFunc(d.Choices, o.Choices, Choice.equal)
}

func (c Choice) equal(o Choice) bool {
	return c.Cluster == o.Cluster && c.Region == o.Region && c.Role == o.Role && c.Priority == o.Priority && c.Share == o.Share &&
		c.Healthy == o.Healthy && c.RTT == o.RTT && slices.EqualFunc(c.Reasons, o.Reasons, Reason.equal)
}

func (r Reason) equal(o Reason) bool {
	return r.Code == o.Code && r.Cluster == o.Cluster && r.RTT == o.RTT && r.Healthy == o.Healthy && r.Total == o.Total &&
		r.Free == o.Free && r.Slots == o.Slots && slices.Equal(r.Policies, o.Policies)
}

// clone copies a decision whose slices will be used again.
func (d *Decision) clone() *Decision {
	copied := &Decision{d.Viewpoint, d.Service, d.Class, slices.Clone(d.Choices)}
	n := 0
	for i := range d.Choices {
		n += len(d.Choices[i].Reasons)
	}
	reasons := make([]Reason, 0, n)
	for i := range copied.Choices {
		begin := len(reasons)
		reasons = append(reasons, d.Choices[i].Reasons...)
		copied.Choices[i].Reasons = reasons[begin:len(reasons):len(reasons)]
	}
	return copied
}
