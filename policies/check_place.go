package policies

import (
	"fmt"
	"time"

	"github.com/meridian-mesh/meridian/geo"
)

func (p *parsing) regions() {
	for i := range p.set.Regions {
		r := &p.set.Regions[i]
		p.region(p.of(KindRegion, string(r.Metadata.Name)), &r.Spec)
	}
}

func (p *parsing) region(c check, spec *RegionSpec) {
	cloud, known := geo.LookupCloudRegion(spec.Cloud)
	if spec.Cloud != "" && !known {
		p.complain(c.doc, "spec.cloud", fmt.Sprintf("%q is not in the built-in table: give country and location instead", clip(spec.Cloud)), nearest(spec.Cloud, cloudKeys()))
		return
	}
	spec.Place = cloud.Place
	c.country(spec, cloud)
	c.location(spec)
	for i, name := range spec.Jurisdictions {
		field := fmt.Sprintf("spec.jurisdictions[%d]", i)
		if isBuiltIn(name) {
			c.complain(field, "%s follows from the country: remove it", name)
			continue
		}
		c.jurisdictionName(field, name)
	}
	distinct(c, "spec.jurisdictions", spec.Jurisdictions)
}

func (c check) location(spec *RegionSpec) {
	if l := spec.Location; l != nil {
		for _, field := range []string{"spec.location.latitude", "spec.location.longitude"} {
			if !c.written(field) {
				c.complain(field, "is missing: give both, in degrees")
			}
		}
		point, err := geo.MakePoint(l.Latitude, l.Longitude)
		if err != nil {
			c.complain("spec.location", "%s", err.Error())
			return
		}
		spec.Place.Point = point
	}
	if !spec.Place.Point.Valid() {
		c.complain("spec", "says not where the region is: give cloud, or country and location")
	}
}

func (c check) country(spec *RegionSpec, cloud geo.CloudRegion) {
	switch {
	case spec.Country == "" && spec.Cloud != "":
		spec.Country = cloud.Place.Country
	case spec.Country == "":
		c.complain("spec.country", "is missing: whose law holds here decides residency")
	case !geo.ValidCountry(spec.Country):
		c.known("spec.country", "ISO 3166-1 code of a country, such as DE", string(spec.Country), asStrings(geo.Countries().Countries()))
	case spec.Cloud != "" && spec.Country != cloud.Place.Country:
		c.complain("spec.country", "%s disagrees with the built-in table, which has %s in %s: remove one", spec.Country, spec.Cloud, cloud.Place.Country)
	}
	spec.Place.Country = spec.Country
}

func cloudKeys() []string {
	var keys []string
	for _, r := range geo.CloudRegions() {
		keys = append(keys, r.Key)
	}
	return keys
}

func (p *parsing) clusters() {
	for i := range p.set.Clusters {
		cl := &p.set.Clusters[i]
		c := p.of(KindCluster, string(cl.Metadata.Name))
		c.reference("spec.region", KindRegion, string(cl.Spec.Region))
		c.addresses("spec.gateways", cl.Spec.Gateways)
		orDefault(&cl.Spec.TrustDomain, string(cl.Metadata.Name)+".meridian")
		if !isTrustDomain(cl.Spec.TrustDomain) {
			c.complain("spec.trustDomain", "%q is not a SPIFFE trust domain: lower-case letters, digits, '.', '-' and '_'", clip(cl.Spec.TrustDomain))
		}
		c.proxies(&cl.Spec)
		c.kubernetes(cl.Spec.Kubernetes)
		c.duration("spec.drainOver", &cl.Spec.DrainOver, 0, 0, 24*time.Hour)
	}
}
