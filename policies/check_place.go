package policies

import (
	"fmt"

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
	if l := spec.Location; l != nil {
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
	for i, name := range spec.Jurisdictions {
		if _, builtIn := geo.Jurisdiction(name); builtIn {
			c.complain(fmt.Sprintf("spec.jurisdictions[%d]", i), "%s follows from the country: remove it", name)
		}
	}
	distinct(c, "spec.jurisdictions", spec.Jurisdictions)
}

func (c check) country(spec *RegionSpec, cloud geo.CloudRegion) {
	switch {
	case spec.Country == "" && spec.Cloud != "":
		spec.Country = cloud.Place.Country
	case spec.Country == "":
		c.complain("spec.country", "is missing: whose law holds here decides residency")
	case !geo.ValidCountry(spec.Country):
		c.complain("spec.country", "%q is not an ISO 3166-1 code such as DE%s", clip(string(spec.Country)), unitedKingdom(string(spec.Country)))
	case spec.Cloud != "" && spec.Country != cloud.Place.Country:
		c.complain("spec.country", "%s disagrees with the built-in table, which has %s in %s: remove one", spec.Country, spec.Cloud, cloud.Place.Country)
	}
	spec.Place.Country = spec.Country
}

// unitedKingdom helps with the code that is mistaken most often.
func unitedKingdom(code string) string {
	if code == "UK" {
		return "; the United Kingdom is GB"
	}
	return ""
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
		for j, a := range cl.Spec.Gateways {
			c.address(fmt.Sprintf("spec.gateways[%d]", j), a)
		}
		distinct(c, "spec.gateways", cl.Spec.Gateways)
		orDefault(&cl.Spec.TrustDomain, string(cl.Metadata.Name)+".meridian")
		if !isTrustDomain(cl.Spec.TrustDomain) {
			c.complain("spec.trustDomain", "%q is not a SPIFFE trust domain: lower-case letters, digits, '.', '-' and '_'", clip(cl.Spec.TrustDomain))
		}
	}
}

// isTrustDomain follows the SPIFFE ID specification, section 2.1.
func isTrustDomain(s string) bool {
	if s == "" || len(s) > 255 {
		return false
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_' {
			return false
		}
	}
	return true
}
