package policies

import (
	"fmt"
	"slices"
	"time"
)

func (p *parsing) traffics() {
	named := map[ServiceName]TrafficName{}
	var general TrafficName
	for i := range p.set.Traffics {
		t := &p.set.Traffics[i]
		c := p.of(KindTraffic, string(t.Metadata.Name))
		if len(t.Spec.Services) == 0 {
			if general != "" {
				c.complain("spec.services", "is missing, and Traffic %s is for all services already: name services in one of them", general)
			}
			general = t.Metadata.Name
		}
		c.trafficServices(t, named)
		c.trafficNumbers(&t.Spec)
		c.failover(&t.Spec)
		c.splits(&t.Spec)
	}
}

func (c check) trafficServices(t *Traffic, named map[ServiceName]TrafficName) {
	distinct(c, "spec.services", t.Spec.Services)
	for i, s := range t.Spec.Services {
		field := fmt.Sprintf("spec.services[%d]", i)
		c.reference(field, KindService, string(s))
		if other, taken := named[s]; taken && other != t.Metadata.Name {
			c.complain(field, "Traffic %s is for %s already: name it in one of them", other, s)
		}
		named[s] = t.Metadata.Name
	}
}

// trafficNumbers fills in defaults and checks what was written.
func (c check) trafficNumbers(t *TrafficSpec) {
	d := defaultTraffic()
	between(c, "spec.spill.targetUtilization", &t.Spill.TargetUtilization, bounds{int64(d.Spill.TargetUtilization), 1, 100})
	between(c, "spec.spill.maxShiftPerSecond", &t.Spill.MaxShiftPerSecond, bounds{int64(d.Spill.MaxShiftPerSecond), 1, 100})
	c.duration("spec.idleTimeout", &t.IdleTimeout, d.IdleTimeout.Std(), time.Second, 24*time.Hour)
	c.duration("spec.retries.connectTimeout", &t.Retries.ConnectTimeout, d.Retries.ConnectTimeout.Std(), 10*time.Millisecond, time.Minute)
	orDefault(&t.Retries.Attempts, d.Retries.Attempts)
	if a := *t.Retries.Attempts; a < 0 || a > 10 {
		c.complain("spec.retries.attempts", "%d is outside 0 to 10", a)
	}
}

// defaultTraffic holds for services that no policy names, and for what a policy leaves out.
func defaultTraffic() TrafficSpec {
	attempts := 3
	return TrafficSpec{
		Spill:       Spill{TargetUtilization: 80, MaxShiftPerSecond: 20},
		Retries:     Retries{Attempts: &attempts, ConnectTimeout: Duration(time.Second)},
		IdleTimeout: Duration(5 * time.Minute),
	}
}

func (c check) failover(t *TrafficSpec) {
	f := t.Failover
	good := true
	for i, r := range f.Regions {
		good = c.reference(fmt.Sprintf("spec.failover.regions[%d]", i), KindRegion, string(r)) && good
	}
	distinct(c, "spec.failover.regions", f.Regions)
	if f.Only && len(f.Regions) == 0 {
		c.complain("spec.failover.only", "limits failover to no region: name regions")
		return
	}
	for _, name := range t.Services {
		if s, ok := c.p.set.Service(name); ok && f.Only && good && !c.p.isServedIn(s, f.Regions) {
			c.complain("spec.failover.regions", "has no pool of %s, and only these regions may serve it: no request could be", name)
		}
	}
}

// isServedIn says whether a service has a pool in one of these regions, as far as they and its clusters are known.
func (p *parsing) isServedIn(s *Service, regions []RegionName) bool {
	return slices.ContainsFunc(s.Spec.Pools, func(pool Pool) bool {
		cluster, ok := p.set.Cluster(pool.Cluster)
		return !ok || slices.Contains(regions, cluster.Spec.Region)
	})
}

func (c check) splits(t *TrafficSpec) {
	sum := 0
	seen := map[ServiceName]bool{}
	for i, split := range t.Splits {
		field := fmt.Sprintf("spec.splits[%d]", i)
		if c.reference(field+".service", KindService, string(split.Service)) {
			c.splitTarget(field+".service", t, split.Service)
		}
		if seen[split.Service] {
			c.complain(field+".service", "%s has a split already: add the percentages up", split.Service)
		}
		seen[split.Service] = true
		if split.Percent < 1 || split.Percent > 100 {
			c.complain(field+".percent", "%d is outside 1 to 100", split.Percent)
		}
		sum += split.Percent
	}
	if sum > 100 {
		c.complain("spec.splits", "sum to %d percent, more than all requests", sum)
	}
	if len(t.Splits) > 0 && len(t.Services) == 0 {
		c.complain("spec.splits", "need spec.services: say whose requests are split")
	}
}

func (c check) splitTarget(field string, t *TrafficSpec, target ServiceName) {
	to, _ := c.p.set.Service(target)
	for _, name := range t.Services {
		from, ok := c.p.set.Service(name)
		switch {
		case name == target:
			c.complain(field, "%s is split to itself", target)
		case ok && from.Spec.Protocol != to.Spec.Protocol:
			c.complain(field, "%s speaks %s and %s speaks %s: only like can be split", target, to.Spec.Protocol, name, from.Spec.Protocol)
		case ok && from.Spec.Protocol == ProtocolTCP:
			c.complain(field, "TCP services can't be split")
		}
	}
}

// TrafficFor is the policy that holds for a service, with every default filled in.
func (s *Set) TrafficFor(service ServiceName) TrafficSpec {
	general := defaultTraffic()
	for _, t := range s.Traffics {
		if len(t.Spec.Services) == 0 {
			general = t.Spec
		}
		for _, name := range t.Spec.Services {
			if name == service {
				return t.Spec
			}
		}
	}
	return general
}
