package verify

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	mutation "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	matching "github.com/envoyproxy/go-control-plane/envoy/extensions/common/matching/v3"
	buffer "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	composite "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/composite/v3"
	extauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	geoip "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/geoip/v3"
	headermutation "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	jsonmetadata "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/json_to_metadata/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	filterstate "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_filter_state/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	maxmind "github.com/envoyproxy/go-control-plane/envoy/extensions/geoip_providers/maxmind/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	headerPrefix  = "x-meridian-"
	headerCountry = "x-meridian-country"
	headerModel   = "x-meridian-model"
	headerService = "x-meridian-service"
	headerClass   = "x-meridian-class"
)

// filterMessage reads an HTTP filter's configuration; nil where it is of a type that the walk does not know.
func filterMessage(config *anypb.Any) proto.Message {
	for _, m := range []proto.Message{
		&headermutation.HeaderMutation{}, &geoip.Geoip{}, &extauthz.ExtAuthz{}, &buffer.Buffer{}, &jsonmetadata.JsonToMetadata{},
		&matching.ExtensionWithMatcher{}, &filterstate.Config{}, &router.Router{},
	} {
		if unpackAny(config, m) {
			return m
		}
	}
	return nil
}

// chain is an edge listener's HTTP filters, read.
type chain struct {
	name    string
	filters []proto.Message
}

// readChain reads filters, and reports those that can't be followed. The first that runs must strip forged headers.
func (k *walk) readChain(name string, m *hcm.HttpConnectionManager) chain {
	c := chain{name: name}
	for _, f := range m.GetHttpFilters() {
		read := filterMessage(f.GetTypedConfig())
		if read == nil || f.GetDisabled() || f.GetIsOptional() {
			k.notAnalysable(name, "HTTP filter %s (%s)", f.GetName(), typeOf(f.GetTypedConfig().GetTypeUrl()))
			continue
		}
		c.filters = append(c.filters, read)
	}
	if len(c.filters) == 0 || !stripsForged(c.filters[0]) {
		k.report(Violation{Code: ForgedHeaders, Resource: name, Detail: "the first filter does not remove every header that begins with " + headerPrefix})
	}
	return c
}

// stripsForged says whether a filter removes every header that only Meridian may set.
func stripsForged(m proto.Message) bool {
	f, ok := m.(*headermutation.HeaderMutation)
	if !ok {
		return false
	}
	for _, one := range f.GetMutations().GetRequestMutations() {
		if one.GetRemoveOnMatch().GetKeyMatcher().GetPrefix() == headerPrefix {
			return true
		}
	}
	return false
}

// values collects the header values that the chain's tables tell apart.
func (c chain) values(into map[string]map[string]bool) {
	for _, f := range c.filters {
		if m, ok := f.(*matching.ExtensionWithMatcher); ok {
			valuesIn(m.GetXdsMatcher(), into)
		}
	}
}

// run gives the headers with which a subject's request comes out of the filters. The client has forged every header
// that it could gain by.
func (c chain) run(k *walk, s subject) (headers, error) {
	h := headers{known: map[string]string{headerCountry: "forged", headerService: "forged", headerClass: "forged", headerModel: "forged"},
		free: map[string]bool{":path": true, ":authority": true, ":method": true}}
	if s.tenant != "" && k.gateway.Spec.TenantHeader != "" {
		h.known[k.gateway.Spec.TenantHeader] = string(s.tenant)
	}
	if s.label != "" {
		h.known[k.gateway.Spec.DataLabelHeader] = string(s.label)
	}
	for _, f := range c.filters {
		if err := runFilter(f, s, h); err != nil {
			return headers{}, err
		}
	}
	return h, nil
}

// runFilter changes headers as a filter does.
func runFilter(f proto.Message, s subject, h headers) error {
	switch f := f.(type) {
	case *headermutation.HeaderMutation:
		return mutate(f.GetMutations().GetRequestMutations(), h)
	case *geoip.Geoip:
		return setCountry(f, s, h)
	case *extauthz.ExtAuthz:
		if s.country != "" {
			h.known[headerCountry] = string(s.country)
		}
	case *matching.ExtensionWithMatcher:
		return runComposite(f, h)
	}
	return nil
}

func setCountry(f *geoip.Geoip, s subject, h headers) error {
	var provider maxmind.MaxMindConfig
	if !unpackAny(f.GetProvider().GetTypedConfig(), &provider) {
		return fmt.Errorf("%w: geoip provider %s", errNotAnalysable, f.GetProvider().GetName())
	}
	if s.country != "" { // where the address is in no database, Envoy leaves the header as it was
		h.known[provider.GetCommonProviderConfig().GetGeoFieldKeys().GetCountry()] = string(s.country)
	}
	return nil
}

// mutate applies header mutations. A value that is made from the request can be anything.
func mutate(all []*mutation.HeaderMutation, h headers) error {
	for _, m := range all {
		switch a := m.GetAction().(type) {
		case *mutation.HeaderMutation_Remove:
			delete(h.known, strings.ToLower(a.Remove))
			delete(h.free, strings.ToLower(a.Remove))
		case *mutation.HeaderMutation_RemoveOnMatch_:
			prefix := a.RemoveOnMatch.GetKeyMatcher().GetPrefix()
			if prefix == "" {
				return fmt.Errorf("%w: headers removed by another match than a prefix", errNotAnalysable)
			}
			maps.DeleteFunc(h.known, func(name, _ string) bool { return strings.HasPrefix(name, prefix) })
			maps.DeleteFunc(h.free, func(name string, _ bool) bool { return strings.HasPrefix(name, prefix) })
		case *mutation.HeaderMutation_Append:
			set(h, a.Append.GetHeader().GetKey(), a.Append.GetHeader().GetValue())
		default:
			return fmt.Errorf("%w: a header mutation of an unknown kind", errNotAnalysable)
		}
	}
	return nil
}

func set(h headers, name, value string) {
	name = strings.ToLower(name)
	delete(h.known, name)
	delete(h.free, name)
	if strings.Contains(value, "%") {
		h.free[name] = true
		return
	}
	h.known[name] = value
}

// runComposite finds the filter that a table executes for the request, and runs it.
func runComposite(f *matching.ExtensionWithMatcher, h headers) error {
	if !unpackAny(f.GetExtensionConfig().GetTypedConfig(), &composite.Composite{}) || f.GetXdsMatcher() == nil {
		return fmt.Errorf("%w: a matched filter that is not composite", errNotAnalysable)
	}
	var actions []*anypb.Any
	if err := leaves(f.GetXdsMatcher(), h, func(a *anypb.Any) error { actions = append(actions, a); return nil }); err != nil {
		return err
	}
	if len(actions) != 1 {
		return fmt.Errorf("%w: a table whose result is not certain", errNotAnalysable)
	}
	if actions[0] == nil {
		return nil
	}
	var execute composite.ExecuteFilterAction
	var filter headermutation.HeaderMutation
	if !unpackAny(actions[0], &execute) || !unpackAny(execute.GetTypedConfig().GetTypedConfig(), &filter) {
		return fmt.Errorf("%w: a table that executes something else than a header mutation", errNotAnalysable)
	}
	return mutate(filter.GetMutations().GetRequestMutations(), h)
}

// follow reports an error of the walk as a violation.
func (k *walk) follow(resource string, err error) {
	if errors.Is(err, errNotAnalysable) {
		k.notAnalysable(resource, "%s", err.Error())
	}
}
