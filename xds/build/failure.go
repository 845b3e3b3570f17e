package build

import (
	"encoding/json"

	accesslog "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	match "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/meridian-mesh/meridian/xds"
)

// failure is an answer that is not a model's: an HTTP status and an error in the shape of the OpenAI API, whose code is
// stable. docs/reference/errors.md lists them.
type failure struct {
	status        uint32
	code          string
	kind, message string
	// retryAfter is in seconds; 0 sends no header.
	retryAfter string
}

var (
	modelNotFound   = failure{status: 404, code: "model_not_found", kind: "invalid_request_error", message: "No service offers this model here."}
	pathNotFound    = failure{status: 404, code: "not_found", kind: "invalid_request_error", message: "No service has this path here."}
	invalidRequest  = failure{status: 400, code: "invalid_request", kind: "invalid_request_error", message: "The request body must be a JSON object whose model is a string of at most 256 printable characters, sent as application/json."}
	bodyTooLarge    = failure{status: 413, code: "request_too_large", kind: "invalid_request_error", message: "The request body is larger than this gateway accepts."}
	noCapacity      = failure{status: 429, code: "no_capacity", kind: "rate_limit_error", message: "Every cluster that may serve this request is full.", retryAfter: "1"}
	noHealthy       = failure{status: 503, code: "no_healthy_cluster", kind: "server_error", message: "No cluster that may serve this request is healthy.", retryAfter: "1"}
	unsatisfiable   = failure{status: 503, code: "residency_unsatisfiable", kind: "server_error", message: "No cluster inside the residency boundary of this request can serve it now, and none outside may."}
	foreignTenant   = failure{status: 403, code: "tenant_not_served", kind: "permission_error", message: "This gateway does not serve the tenant of this request."}
	unknownLocation = failure{status: 403, code: "unknown_location", kind: "permission_error", message: "The client's location can't be told, and a residency policy needs it."}
)

// because adds what decided.
func (f failure) because(detail string) failure {
	f.message += " " + detail
	return f
}

// body is the error as the OpenAI API writes it.
func (f failure) body() string {
	type object struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	bytes, err := json.Marshal(map[string]object{"error": {Message: f.message, Type: f.kind, Code: f.code}})
	if err != nil { // strings always marshal
		return ""
	}
	return string(bytes)
}

// route answers every request that reaches it with the failure.
func (f failure) route() *route.Route {
	r := &route.Route{
		Name:  f.code,
		Match: anyPath(),
		Action: &route.Route_DirectResponse{DirectResponse: &route.DirectResponseAction{Status: f.status, Body: &core.DataSource{
			Specifier: &core.DataSource_InlineString{InlineString: f.body()}}}},
		ResponseHeadersToAdd: []*core.HeaderValueOption{setHeader("content-type", "application/json")},
	}
	if f.retryAfter != "" {
		r.ResponseHeadersToAdd = append(r.ResponseHeadersToAdd, setHeader("retry-after", f.retryAfter))
	}
	return r
}

// replaces is the rule that turns an answer of Envoy's own into the failure.
func (f failure) replaces(when *accesslog.AccessLogFilter) *hcm.ResponseMapper {
	m := &hcm.ResponseMapper{
		Filter: when, StatusCode: uint32Value(f.status),
		Body: &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: f.body()}},
		BodyFormatOverride: &core.SubstitutionFormatString{ContentType: "application/json", Format: &core.SubstitutionFormatString_TextFormatSource{
			TextFormatSource: &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: "%LOCAL_REPLY_BODY%"}}}},
	}
	if f.retryAfter != "" {
		m.HeadersToAdd = []*core.HeaderValueOption{setHeader("retry-after", f.retryAfter)}
	}
	return m
}

// localReplies are the rules for answers of Envoy's own, in order. The flags are Envoy's response flags: UO overflow of a
// circuit breaker, UH no healthy upstream, UF connection failure, UC connection termination, URX retries exhausted.
func localReplies() *hcm.LocalReplyConfig {
	dead := flags("UH", "UF", "UC", "URX", "NC")
	return &hcm.LocalReplyConfig{Mappers: []*hcm.ResponseMapper{
		bodyTooLarge.replaces(statusIs(413)),
		noCapacity.replaces(flags("UO")),
		unsatisfiable.replaces(both(dead, either(requestHas(xds.HeaderPinned), rememberedPinned()))),
		noHealthy.replaces(dead),
	}}
}

func flags(names ...string) *accesslog.AccessLogFilter {
	return &accesslog.AccessLogFilter{FilterSpecifier: &accesslog.AccessLogFilter_ResponseFlagFilter{ResponseFlagFilter: &accesslog.ResponseFlagFilter{Flags: names}}}
}

func statusIs(code uint32) *accesslog.AccessLogFilter {
	return &accesslog.AccessLogFilter{FilterSpecifier: &accesslog.AccessLogFilter_StatusCodeFilter{StatusCodeFilter: &accesslog.StatusCodeFilter{
		Comparison: &accesslog.ComparisonFilter{Op: accesslog.ComparisonFilter_EQ, Value: &core.RuntimeUInt32{DefaultValue: code, RuntimeKey: "meridian.unused"}}}}}
}

func requestHas(header string) *accesslog.AccessLogFilter {
	return &accesslog.AccessLogFilter{FilterSpecifier: &accesslog.AccessLogFilter_HeaderFilter{HeaderFilter: &accesslog.HeaderFilter{
		Header: &route.HeaderMatcher{Name: header, HeaderMatchSpecifier: &route.HeaderMatcher_PresentMatch{PresentMatch: true}}}}}
}

// rememberedPinned holds where rememberPinned has seen the header.
func rememberedPinned() *accesslog.AccessLogFilter {
	return &accesslog.AccessLogFilter{FilterSpecifier: &accesslog.AccessLogFilter_MetadataFilter{MetadataFilter: &accesslog.MetadataFilter{
		MatchIfKeyNotFound: boolValue(false), Matcher: &match.MetadataMatcher{Filter: xds.MetadataNamespace,
			Path:  []*match.MetadataMatcher_PathSegment{{Segment: &match.MetadataMatcher_PathSegment_Key{Key: "pinned"}}},
			Value: &match.ValueMatcher{MatchPattern: &match.ValueMatcher_PresentMatch{PresentMatch: true}}}}}}
}

func either(filters ...*accesslog.AccessLogFilter) *accesslog.AccessLogFilter {
	return &accesslog.AccessLogFilter{FilterSpecifier: &accesslog.AccessLogFilter_OrFilter{OrFilter: &accesslog.OrFilter{Filters: filters}}}
}

func both(filters ...*accesslog.AccessLogFilter) *accesslog.AccessLogFilter {
	return &accesslog.AccessLogFilter{FilterSpecifier: &accesslog.AccessLogFilter_AndFilter{AndFilter: &accesslog.AndFilter{Filters: filters}}}
}
