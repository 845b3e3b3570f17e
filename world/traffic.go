package world

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/meridian-mesh/meridian/policies"
)

// DemandOf is the demand of one key: the sum of its parts.
type DemandOf struct {
	Key    DemandKey
	Demand Demand
}

// DemandPart is the part of a key's demand that went to one cluster.
type DemandPart struct {
	Key     DemandKey
	Cluster policies.ClusterName
	Demand  Demand
}

// Compare orders parts by key, then cluster.
func (p DemandPart) Compare(o DemandPart) int {
	return cmp.Or(p.Key.Compare(o.Key), strings.Compare(string(p.Cluster), string(o.Cluster)))
}

// SharesOf is the shares in force for one key and since when.
type SharesOf struct {
	// Shares are sorted by cluster.
	Shares []Share
	At     time.Time
}

// Traffic is the demand for one service and the shares in force for it. A world holds one for each service of its
// policies, so that a change costs what its service has, not what all have. It is immutable once committed.
type Traffic struct {
	service policies.ServiceName
	demand  []DemandOf   // sorted by key
	parts   []DemandPart // sorted; demand has their sums
	shares  []sharesFor  // sorted by key
}

// sharesFor is a SharesOf and its key.
type sharesFor struct {
	key DemandKey
	SharesOf
}

func (t *Traffic) clone() *Traffic {
	return &Traffic{t.service, slices.Clone(t.demand), slices.Clone(t.parts), slices.Clone(t.shares)}
}

// DemandFor is the demand for one service, sorted by class, then viewpoint.
func (w *World) DemandFor(service policies.ServiceName) []DemandOf {
	if t := w.trafficFor(service); t != nil {
		return t.demand
	}
	return nil
}

// DemandParts is the demand for one service by the clusters that it went to, sorted by class, viewpoint, cluster.
func (w *World) DemandParts(service policies.ServiceName) []DemandPart {
	if t := w.trafficFor(service); t != nil {
		return t.parts
	}
	return nil
}

// SharesInForce are the shares last published for a key; ok is false where none were.
func (w *World) SharesInForce(key DemandKey) (shares SharesOf, ok bool) {
	t := w.trafficFor(key.Service)
	if t == nil {
		return SharesOf{}, false
	}
	i, ok := slices.BinarySearchFunc(t.shares, key, compareShares)
	if !ok {
		return SharesOf{}, false
	}
	return t.shares[i].SharesOf, true
}

// Traffic has an entry for each service of the policies, in their order. While an entry is the same pointer, DemandFor,
// DemandParts and SharesInForce answer the same for its service.
func (w *World) Traffic() []*Traffic { return w.traffic }

// trafficFor is nil where the policies name no such service.
func (w *World) trafficFor(service policies.ServiceName) *Traffic {
	i, ok := slices.BinarySearchFunc(w.traffic, service, compareTraffic)
	if !ok {
		return nil
	}
	return w.traffic[i]
}

// knows says whether the policies in force name everything in a key but its viewpoint, which proxies name.
func (w *World) knows(key DemandKey) bool {
	if w.set == nil || key.Class == "" {
		return false
	}
	if _, ok := w.set.Service(key.Service); !ok {
		return false
	}
	for _, rule := range key.Class.Rules() {
		if _, ok := w.set.Residency(rule); !ok {
			return false
		}
	}
	return true
}

// hasCluster says whether a part may be of this cluster: one that the policies name, or none.
func (w *World) hasCluster(name policies.ClusterName) bool {
	_, ok := w.RegionOf(name)
	return ok || name == ""
}

// seeDemand replaces the part of one cluster and sums the key's parts anew. A part of a cluster that is gone from the
// policies is no longer added, but may still be lowered: its requests have gone elsewhere, and not all at once.
func (c *commit) seeDemand(f DemandSeen) {
	if !c.next.knows(f.Key) {
		return
	}
	part := DemandPart(f)
	t := c.next.trafficFor(f.Key.Service)
	i, ok := slices.BinarySearchFunc(t.parts, part, DemandPart.Compare)
	forget := f.Demand.InFlight == 0 && f.Demand.RequestsPerSecond == 0
	switch {
	case ok && !forget && t.parts[i].Demand == f.Demand:
		return
	case !ok && (forget || !c.next.hasCluster(f.Cluster)):
		return
	}
	t = c.ownTraffic(f.Key.Service)
	switch {
	case forget:
		t.parts = slices.Delete(t.parts, i, i+1)
	case ok:
		t.parts[i] = part
	default:
		t.parts = slices.Insert(t.parts, i, part)
	}
	c.noteDemand(f.Key.Service, t.sum(f.Key))
}

// sum makes the demand of a key from its parts. It says whether the amount changed.
func (t *Traffic) sum(key DemandKey) (changed bool) {
	i, ok := slices.BinarySearchFunc(t.demand, key, compareDemand)
	if !ok {
		t.demand = slices.Insert(t.demand, i, DemandOf{Key: key})
	}
	var total Demand
	parts := t.partsOf(key)
	for _, p := range parts {
		total.InFlight += p.Demand.InFlight
		total.RequestsPerSecond += p.Demand.RequestsPerSecond
		if p.Demand.At.After(total.At) {
			total.At = p.Demand.At
		}
	}
	before := t.demand[i].Demand
	t.demand[i].Demand = total
	if len(parts) == 0 {
		t.demand = slices.Delete(t.demand, i, i+1)
	}
	return before.InFlight != total.InFlight || before.RequestsPerSecond != total.RequestsPerSecond
}

func (t *Traffic) partsOf(key DemandKey) []DemandPart {
	lo, _ := slices.BinarySearchFunc(t.parts, DemandPart{Key: key}, DemandPart.Compare)
	hi := lo
	for hi < len(t.parts) && t.parts[hi].Key == key {
		hi++
	}
	return t.parts[lo:hi]
}

func (c *commit) noteDemand(service policies.ServiceName, changed bool) {
	if changed {
		c.services[service] = true
	} else {
		c.delta.Refreshed = true
	}
}

func (c *commit) publishShares(f SharesPublished) {
	if !c.next.knows(f.Key) {
		return
	}
	shares := slices.SortedFunc(slices.Values(f.Shares), func(a, b Share) int { return cmp.Compare(a.Cluster, b.Cluster) })
	t := c.next.trafficFor(f.Key.Service)
	i, ok := slices.BinarySearchFunc(t.shares, f.Key, compareShares)
	if ok && t.shares[i].At.Equal(f.At) && slices.Equal(t.shares[i].Shares, shares) {
		return
	}
	t = c.ownTraffic(f.Key.Service)
	if !ok {
		t.shares = slices.Insert(t.shares, i, sharesFor{key: f.Key})
	}
	t.shares[i].SharesOf = SharesOf{Shares: shares, At: f.At}
	c.services[f.Key.Service] = true
}

// ownTraffic is a service's traffic, made writable: copied once a commit.
func (c *commit) ownTraffic(service policies.ServiceName) *Traffic {
	if !c.ownsTraffic {
		c.next.traffic, c.ownsTraffic = slices.Clone(c.next.traffic), true
	}
	i, _ := slices.BinarySearchFunc(c.next.traffic, service, compareTraffic)
	if t := c.next.traffic[i]; c.ownedTraffic[t] {
		return t
	}
	t := c.next.traffic[i].clone()
	c.next.traffic[i], c.ownedTraffic[t] = t, true
	return t
}

func compareTraffic(t *Traffic, name policies.ServiceName) int { return cmp.Compare(t.service, name) }
func compareDemand(d DemandOf, k DemandKey) int                { return d.Key.Compare(k) }
func compareShares(s sharesFor, k DemandKey) int               { return s.key.Compare(k) }
