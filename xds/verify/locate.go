package verify

import (
	"fmt"
	"strconv"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	geoip "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/geoip/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	maxmind "github.com/envoyproxy/go-control-plane/envoy/extensions/geoip_providers/maxmind/v3"

	"github.com/meridian-mesh/meridian/policies"
)

// located checks that clients are located as the Gateway policy says: whose address counts, and who is asked about it.
func (k *walk) located(name string, m *hcm.HttpConnectionManager, c chain) bool {
	why := ""
	if !m.GetUseRemoteAddress().GetValue() || int(m.GetXffNumTrustedHops()) != k.gateway.Spec.TrustedHops {
		why = fmt.Sprintf("it does not trust just %d proxies in front", k.gateway.Spec.TrustedHops)
	}
	for _, f := range c.filters {
		switch f := f.config.(type) {
		case *geoip.Geoip:
			p, err := provider(f)
			if l := k.gateway.Spec.Location; err != nil || l.Source != policies.LocationGeoIP || p.GetCountryDbPath()+p.GetCityDbPath() != l.Database { // one of them is set
				why = "it reads another database than the Gateway names"
			}
		case *extauthz.ExtAuthz:
			if !k.asksGeoService(name, f.GetGrpcService()) {
				why = "it asks another service than the Gateway names, or trusts other proxies in front"
			}
		}
	}
	if why != "" {
		k.report(Violation{Code: WrongLocation, Resource: name, Detail: why})
	}
	return why == ""
}

func provider(f *geoip.Geoip) (*maxmind.MaxMindConfig, error) {
	p := &maxmind.MaxMindConfig{}
	if !unpackAny(f.GetProvider().GetTypedConfig(), p) {
		return nil, fmt.Errorf("%w: geoip provider %s", errNotAnalysable, f.GetProvider().GetName())
	}
	return p, nil
}

// trustedHops is how the geo service is told which address of x-forwarded-for counts.
const trustedHops = "meridian-trusted-hops"

// asksGeoService says whether a call leads to the Gateway's geo service, and nowhere else, and says which proxies in front
// are trusted.
func (k *walk) asksGeoService(resource string, call *core.GrpcService) bool {
	l, cluster := k.gateway.Spec.Location, call.GetEnvoyGrpc().GetClusterName()
	for _, h := range call.GetInitialMetadata() {
		if h.GetKey() != trustedHops || h.GetValue() != strconv.Itoa(k.gateway.Spec.TrustedHops) {
			return false
		}
	}
	c, ok := k.config.clusters[cluster]
	if !ok {
		k.report(Violation{Code: Dangling, Resource: resource, Detail: "cluster " + cluster + " is not there"})
		return true // said already
	}
	if l.Source != policies.LocationGeoService || l.Service == nil || len(call.GetInitialMetadata()) != 1 {
		return false
	}
	for _, e := range k.hosts(cluster, c) {
		for _, a := range addressesOf(e) {
			if at, ok := socket(a); !ok || at != l.Service.AddrPort() {
				return false
			}
		}
	}
	return true
}
