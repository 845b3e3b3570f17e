package controlplane

import (
	"github.com/meridian-mesh/meridian/geo/mmdb"
	"github.com/meridian-mesh/meridian/health/probe"
	"github.com/meridian-mesh/meridian/health/scrape"
	"github.com/meridian-mesh/meridian/internal/pipeline"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/serve"
)

// setPolicies puts a new set in force everywhere.
func (p *Plane) setPolicies(set *policies.Set) {
	p.keepPolicies(set)
	p.pipeline.SetPolicies(set)
	p.seed(set)
	p.metrics.policyLoads.WithLabelValues("ok").Inc()
	p.log.Info("policies in force", "hash", set.Hash[:12], "regions", len(set.Regions), "clusters", len(set.Clusters), "services", len(set.Services))
	p.warnOfDemoDatabase(set)
}

// membersChanged has the endpoints of now probed and scraped, and other policies' clusters read. Those may be more than the folder names:
// what retires is read until it is gone.
func (p *Plane) membersChanged(w *world.World) {
	p.prober.Update(probe.Targets(w))
	p.scraper.Update(scrape.Targets(w))
	if set := w.Policies(); set != nil && set != p.reading {
		p.reading = set
		p.kube.Update(set)
	}
}

// warnOfDemoDatabase is loud where a database that is partly invented would decide residency.
func (p *Plane) warnOfDemoDatabase(set *policies.Set) {
	if p.config.Demo || !p.geo.Info().Demo {
		return
	}
	for _, g := range set.Gateways {
		if g.Spec.Location.Source == policies.LocationGeoService {
			p.log.Error("THE DEMO GEO DATABASE DECIDES RESIDENCY: it is incomplete and partly invented; give --geo-database", "gateway", string(g.Metadata.Name))
		}
	}
}

// quarantined keeps what proxies refused out of what is published next.
func (p *Plane) quarantined(v world.ViewpointID, q serve.Quarantine) {
	p.metrics.quarantines.Inc()
	p.pipeline.Refuse(v, pipeline.Refusal{Good: q.Good, Tried: q.Tried, Refused: q.Refused, Proxy: q.Node, Reason: q.Reason, At: q.At})
}

func (p *Plane) policiesFailed(err error) {
	p.metrics.policyLoads.WithLabelValues("error").Inc()
	p.log.Error("policies not in force, the last good set stays", "error", err)
}

func (p *Plane) geoReloaded(info mmdb.Info, err error) {
	if err != nil {
		p.log.Error("geo database not loaded, the last good one stays", "error", err)
		return
	}
	p.log.Info("geo database loaded", "type", info.Type, "built", info.Built)
}

// cycled takes down what a cycle did, and says loudly what verify refused.
func (p *Plane) cycled(c pipeline.Cycle) {
	p.metrics.cycled(c)
	if c.State.BuildError != nil {
		p.log.Error("configuration not built, the last good one stays", "error", c.State.BuildError)
	}
	if c.Refused == 0 {
		return
	}
	for viewpoint, violations := range c.State.Refused {
		p.log.Error("configuration refused by verify, the last good one stays", "viewpoint", string(viewpoint), "violations", len(violations), "first", violations[0].String())
	}
}
