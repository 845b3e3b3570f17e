package build

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	setstate "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	lua "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	filterstate "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_filter_state/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	geocommon "github.com/envoyproxy/go-control-plane/envoy/extensions/geoip_providers/common/v3"
	maxmind "github.com/envoyproxy/go-control-plane/envoy/extensions/geoip_providers/maxmind/v3"

	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds"
)

// old says whether this is for Envoys that lack what came after 1.36.
func (b *builder) old() bool { return b.viewpoint.Dialect == world.DialectEnvoy136 }

// geoProvider looks countries up in a database. Envoy 1.36 has one field for databases of cities and countries, and calls the
// header's field otherwise.
func (b *builder) geoProvider(database string) *maxmind.MaxMindConfig {
	if b.old() {
		return &maxmind.MaxMindConfig{CityDbPath: database, CommonProviderConfig: &geocommon.CommonGeoipProviderConfig{
			//lint:ignore SA1019 Envoy 1.36 knows no other
			GeoHeadersToAdd: &geocommon.CommonGeoipProviderConfig_GeolocationHeadersToAdd{Country: xds.HeaderCountry}}}
	}
	return &maxmind.MaxMindConfig{CountryDbPath: database, CommonProviderConfig: &geocommon.CommonGeoipProviderConfig{
		GeoFieldKeys: &geocommon.CommonGeoipProviderConfig_GeolocationFieldKeys{Country: xds.HeaderCountry}}}
}

// rerouted makes Envoy choose the route anew, now that the headers that decide are set. Envoy 1.36 has no filter that does so
// but Lua.
func (b *builder) rerouted(c *collector) *hcm.HttpFilter {
	if b.old() {
		return httpFilter(c, "envoy.filters.http.lua", &lua.Lua{DefaultSourceCode: inline(xds.LuaClearRoute)})
	}
	return httpFilter(c, "envoy.filters.http.set_filter_state", &filterstate.Config{ClearRouteCache: true, OnRequestHeaders: []*setstate.FilterStateValue{{
		Key:        &setstate.FilterStateValue_ObjectKey{ObjectKey: "meridian.admitted"},
		Value:      &setstate.FilterStateValue_FormatString{FormatString: &core.SubstitutionFormatString{Format: &core.SubstitutionFormatString_TextFormatSource{TextFormatSource: inline("yes")}}},
		FactoryKey: "envoy.string",
	}}})
}

func inline(text string) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: text}}
}
