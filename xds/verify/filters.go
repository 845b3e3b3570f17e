package verify

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	matching "github.com/envoyproxy/go-control-plane/envoy/extensions/common/matching/v3"
	buffer "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	composite "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/composite/v3"
	extauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	geoip "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/geoip/v3"
	headermutation "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	headermetadata "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"
	jsonmetadata "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/json_to_metadata/v3"
	lua "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	filterstate "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_filter_state/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/xds"
)

// chain is an edge listener's HTTP filters, read.
type chain struct {
	gateway *policies.Gateway
	filters []filter
}

// filter is one HTTP filter. table is what a composite filter looks its action up in.
type filter struct {
	config proto.Message
	table  *node
}

// readChain reads filters and reports what is wrong with them. ok is false where what follows would not be certain.
func (k *walk) readChain(name string, m *hcm.HttpConnectionManager) (c chain, ok bool) {
	c.gateway = k.gateway
	for _, f := range m.GetHttpFilters() {
		read, err := readFilter(f.GetTypedConfig())
		if err != nil {
			k.notAnalysable(name, "HTTP filter %s: %s", f.GetName(), err)
			return c, false
		}
		c.filters = append(c.filters, read)
	}
	switch {
	case len(c.filters) == 0 || !stripsForged(c.filters[0].config):
		k.report(Violation{Code: ForgedHeaders, Resource: name, Detail: "the first filter does not remove every header that begins with " + xds.HeaderPrefix})
		return c, false
	case !c.choosesAnew():
		k.report(Violation{Code: StaleRoute, Resource: name, Detail: "no filter clears the route after the headers that decide are set"})
		return c, false
	}
	return c, k.located(name, m, c)
}

func readFilter(config *anypb.Any) (filter, error) {
	for _, m := range []proto.Message{
		&headermutation.HeaderMutation{}, &geoip.Geoip{}, &extauthz.ExtAuthz{}, &buffer.Buffer{}, &headermetadata.Config{},
		&jsonmetadata.JsonToMetadata{}, &router.Router{},
	} {
		if unpackAny(config, m) {
			return filter{config: m}, nil
		}
	}
	var matched matching.ExtensionWithMatcher
	var state filterstate.Config
	var program lua.Lua
	switch {
	case unpackAny(config, &matched):
		if !unpackAny(matched.GetExtensionConfig().GetTypedConfig(), &composite.Composite{}) || matched.GetXdsMatcher() == nil {
			return filter{}, fmt.Errorf("%w: a matched filter that is not composite", errNotAnalysable)
		}
		table, err := readTree(matched.GetXdsMatcher())
		return filter{config: &matched, table: table}, err
	case unpackAny(config, &state):
		for _, v := range state.GetOnRequestHeaders() {
			if !strings.HasPrefix(v.GetObjectKey(), "meridian.") {
				return filter{}, fmt.Errorf("%w: state %q may choose where requests go", errNotAnalysable, v.GetObjectKey())
			}
		}
		return filter{config: &state}, nil
	case unpackAny(config, &program):
		if program.GetDefaultSourceCode().GetInlineString() != xds.LuaClearRoute {
			return filter{}, fmt.Errorf("%w: a program that is not ours", errNotAnalysable)
		}
		return filter{config: &program}, nil
	}
	return filter{}, fmt.Errorf("%w: type %s", errNotAnalysable, typeOf(config.GetTypeUrl()))
}

// stripsForged says whether a filter removes every header that only Meridian may set.
func stripsForged(m proto.Message) bool {
	f, ok := m.(*headermutation.HeaderMutation)
	if !ok {
		return false
	}
	for _, one := range f.GetMutations().GetRequestMutations() {
		if one.GetRemoveOnMatch().GetKeyMatcher().GetPrefix() == xds.HeaderPrefix {
			return true
		}
	}
	return false
}

// choosesAnew says whether the route is chosen, or chosen again, after the last filter that sets a header: Envoy keeps a
// route that was looked at before.
func (c chain) choosesAnew() bool {
	anew := false
	for _, f := range c.filters {
		switch m := f.config.(type) {
		case *filterstate.Config:
			anew = anew || m.GetClearRouteCache()
		case *lua.Lua:
			anew = true // readFilter takes no other program
		case *headermutation.HeaderMutation, *geoip.Geoip, *extauthz.ExtAuthz, *matching.ExtensionWithMatcher:
			anew = false
		}
	}
	return anew
}

// values collects the header values that the chain's tables tell apart.
func (c chain) values(into map[string]map[string]bool) {
	for _, f := range c.filters {
		if f.table != nil {
			f.table.values(into)
		}
	}
}

// run gives the headers with which a subject's request comes out of the filters. What else it carries is the client's
// choice, forged or not.
func (c chain) run(s subject) (headers, error) {
	h := headers{listed: map[string]value{}}
	if t := c.gateway.Spec.TenantHeader; t != "" {
		h.listed[strings.ToLower(t)] = valueOf(string(s.tenant))
	}
	h.listed[strings.ToLower(c.gateway.Spec.DataLabelHeader)] = valueOf(string(s.label))
	for _, f := range c.filters {
		if err := f.run(s, &h); err != nil {
			return headers{}, err
		}
	}
	return h, nil
}

// valueOf is a header with a subject's value.
func valueOf(text string) value {
	switch text {
	case "":
		return value{certainty: absent}
	case unnamed, unnamedCountry:
		return value{named, text}
	}
	return value{exactly, text}
}

// run changes headers as a filter does.
func (f filter) run(s subject, h *headers) error {
	switch m := f.config.(type) {
	case *headermutation.HeaderMutation:
		return h.mutate(m.GetMutations().GetRequestMutations())
	case *geoip.Geoip:
		p, err := provider(m)
		if err != nil {
			return err
		}
		keys := p.GetCommonProviderConfig()
		//lint:ignore SA1019 Envoy 1.36 knows no other
		setCountry(h, cmp.Or(keys.GetGeoFieldKeys().GetCountry(), keys.GetGeoHeadersToAdd().GetCountry()), s)
	case *extauthz.ExtAuthz:
		setCountry(h, xds.HeaderCountry, s)
	case *matching.ExtensionWithMatcher:
		return f.runTable(h)
	}
	return nil
}

// setCountry does nothing where the location is not known: then the header stays what it was.
func setCountry(h *headers, name string, s subject) {
	if s.country != "" {
		h.listed[strings.ToLower(name)] = valueOf(string(s.country))
	}
}

// runTable finds the filter that a table executes for the request, and runs it.
func (f filter) runTable(h *headers) error {
	var actions []*anypb.Any
	sure, err := f.table.leaves(*h, func(a *anypb.Any) error { actions = append(actions, a); return nil })
	switch {
	case err != nil:
		return err
	case !sure && len(actions) == 0:
		return nil
	case !sure || len(actions) > 1:
		return fmt.Errorf("%w: a table whose result is not certain", errNotAnalysable)
	}
	var execute composite.ExecuteFilterAction
	var mutates headermutation.HeaderMutation
	if !unpackAny(actions[0], &execute) || !unpackAny(execute.GetTypedConfig().GetTypedConfig(), &mutates) {
		return fmt.Errorf("%w: a table that executes something else than a header mutation", errNotAnalysable)
	}
	return h.mutate(mutates.GetMutations().GetRequestMutations())
}

// follow reports an error of the walk as a violation.
func (k *walk) follow(resource string, err error) {
	if errors.Is(err, errNotAnalysable) {
		k.notAnalysable(resource, "%s", err)
	}
}
