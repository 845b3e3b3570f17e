package verify

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	// Messages that stand packed in others, and are only read by their descriptors.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/internal_upstream/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
)

// anyField stands for all fields of a message: none of them can change where a request goes.
const anyField = "*"

// vocabulary is the part of Envoy's API that the walk understands: for each message the fields that it follows, and those
// that can't change where a request goes or what it says of itself. Whatever else is set is refused, so that nothing gets
// past only because nobody has thought of it. Who gives xds/build a new word adds it here, and says what it can do.
var vocabulary = func() map[protoreflect.FullName][]string {
	words := map[protoreflect.FullName][]string{}
	for _, part := range []string{listenerWords, filterWords, matcherWords, routeWords, clusterWords, endpointWords, tlsWords, plainWords} {
		for line := range strings.Lines(part) {
			if fields := strings.Fields(line); len(fields) > 0 {
				words[protoreflect.FullName(fields[0])] = fields[1:]
			}
		}
	}
	return words
}()

const listenerWords = `
envoy.config.listener.v3.Listener name address api_listener filter_chains default_filter_chain internal_listener listener_filters per_connection_buffer_limit_bytes
envoy.config.listener.v3.Listener.InternalListenerConfig
envoy.config.listener.v3.ListenerFilter name typed_config
envoy.config.listener.v3.FilterChain name filter_chain_match filters transport_socket
envoy.config.listener.v3.FilterChainMatch server_names
envoy.config.listener.v3.Filter name typed_config
envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector
envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy stat_prefix cluster weighted_clusters idle_timeout max_connect_attempts backoff_options
envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster clusters
envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight name weight
envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager stat_prefix codec_type http_filters rds route_config stream_idle_timeout request_headers_timeout common_http_protocol_options http_protocol_options http2_protocol_options local_reply_config use_remote_address xff_num_trusted_hops skip_xff_append generate_request_id server_header_transformation normalize_path merge_slashes path_with_escaped_slashes_action strip_any_host_port max_request_headers_kb
envoy.extensions.filters.network.http_connection_manager.v3.Rds config_source route_config_name
envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter name typed_config
envoy.extensions.filters.network.http_connection_manager.v3.LocalReplyConfig mappers body_format
envoy.extensions.filters.network.http_connection_manager.v3.ResponseMapper filter status_code body body_format_override headers_to_add
envoy.config.accesslog.v3.AccessLogFilter status_code_filter response_flag_filter header_filter metadata_filter and_filter or_filter
envoy.config.accesslog.v3.AndFilter filters
envoy.config.accesslog.v3.OrFilter filters
envoy.config.accesslog.v3.StatusCodeFilter comparison
envoy.config.accesslog.v3.ComparisonFilter *
envoy.config.accesslog.v3.ResponseFlagFilter *
envoy.config.accesslog.v3.HeaderFilter *
envoy.config.accesslog.v3.MetadataFilter *
`

const filterWords = `
envoy.extensions.filters.http.header_mutation.v3.HeaderMutation mutations
envoy.extensions.filters.http.header_mutation.v3.Mutations request_mutations
envoy.config.common.mutation_rules.v3.HeaderMutation remove append remove_on_match
envoy.config.common.mutation_rules.v3.HeaderMutation.RemoveOnMatch key_matcher
envoy.extensions.filters.http.geoip.v3.Geoip provider
envoy.extensions.geoip_providers.maxmind.v3.MaxMindConfig country_db_path city_db_path common_provider_config
envoy.extensions.geoip_providers.common.v3.CommonGeoipProviderConfig geo_field_keys geo_headers_to_add
envoy.extensions.geoip_providers.common.v3.CommonGeoipProviderConfig.GeolocationFieldKeys country
envoy.extensions.geoip_providers.common.v3.CommonGeoipProviderConfig.GeolocationHeadersToAdd country
envoy.extensions.filters.http.lua.v3.Lua default_source_code
envoy.extensions.filters.http.ext_authz.v3.ExtAuthz grpc_service transport_api_version failure_mode_allow
envoy.config.core.v3.GrpcService envoy_grpc timeout initial_metadata
envoy.config.core.v3.GrpcService.EnvoyGrpc cluster_name
envoy.extensions.filters.http.buffer.v3.Buffer *
envoy.extensions.filters.http.buffer.v3.BufferPerRoute *
envoy.extensions.filters.http.header_to_metadata.v3.Config request_rules
envoy.extensions.filters.http.header_to_metadata.v3.Config.Rule header on_header_present
envoy.extensions.filters.http.header_to_metadata.v3.Config.KeyValuePair *
envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata request_rules
envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata.MatchRules *
envoy.extensions.common.matching.v3.ExtensionWithMatcher extension_config xds_matcher
envoy.extensions.filters.http.composite.v3.Composite
envoy.extensions.filters.http.composite.v3.ExecuteFilterAction typed_config
envoy.extensions.filters.http.set_filter_state.v3.Config on_request_headers clear_route_cache
envoy.extensions.filters.common.set_filter_state.v3.FilterStateValue object_key format_string factory_key
envoy.extensions.filters.http.router.v3.Router suppress_envoy_headers
envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec
`

const matcherWords = `
xds.type.matcher.v3.Matcher matcher_list matcher_tree on_no_match
xds.type.matcher.v3.Matcher.OnMatch matcher action
xds.type.matcher.v3.Matcher.MatcherList matchers
xds.type.matcher.v3.Matcher.MatcherList.FieldMatcher predicate on_match
xds.type.matcher.v3.Matcher.MatcherList.Predicate single_predicate
xds.type.matcher.v3.Matcher.MatcherList.Predicate.SinglePredicate input value_match
xds.type.matcher.v3.Matcher.MatcherTree input exact_match_map prefix_match_map
xds.type.matcher.v3.Matcher.MatcherTree.MatchMap map
xds.type.matcher.v3.StringMatcher exact prefix safe_regex
xds.type.matcher.v3.RegexMatcher *
xds.core.v3.TypedExtensionConfig name typed_config
envoy.type.matcher.v3.HttpRequestHeaderMatchInput header_name
`

const routeWords = `
envoy.config.route.v3.RouteConfiguration name virtual_hosts validate_clusters max_direct_response_body_size_bytes
envoy.config.route.v3.VirtualHost name domains matcher routes request_body_buffer_limit
envoy.config.route.v3.Route name match route direct_response non_forwarding_action request_headers_to_add request_headers_to_remove response_headers_to_add response_headers_to_remove typed_per_filter_config
envoy.config.route.v3.RouteMatch prefix path headers
envoy.config.route.v3.HeaderMatcher name string_match
envoy.config.route.v3.NonForwardingAction
envoy.config.listener.v3.ApiListener api_listener
envoy.config.route.v3.DirectResponseAction status body
envoy.config.route.v3.RouteAction cluster weighted_clusters timeout idle_timeout retry_policy request_mirror_policies
envoy.config.route.v3.RouteAction.RequestMirrorPolicy cluster
envoy.config.route.v3.WeightedCluster clusters
envoy.config.route.v3.WeightedCluster.ClusterWeight name weight request_headers_to_add request_headers_to_remove
envoy.config.route.v3.RetryPolicy retry_on retriable_status_codes num_retries retry_back_off retry_host_predicate host_selection_retry_max_attempts retry_priority per_try_timeout per_try_idle_timeout
envoy.config.route.v3.RetryPolicy.RetryBackOff *
envoy.config.route.v3.RetryPolicy.RetryHostPredicate name typed_config
envoy.config.route.v3.RetryPolicy.RetryPriority name typed_config
envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate
envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig *
`

const clusterWords = `
envoy.config.cluster.v3.Cluster name type cluster_type eds_cluster_config load_assignment connect_timeout per_connection_buffer_limit_bytes lb_policy common_lb_config lrs_server lrs_report_endpoint_metrics circuit_breakers outlier_detection health_checks close_connections_on_host_health_failure ignore_health_on_host_removal typed_extension_protocol_options transport_socket transport_socket_matches
envoy.config.cluster.v3.Cluster.CustomClusterType name typed_config
envoy.extensions.clusters.aggregate.v3.ClusterConfig clusters
envoy.config.cluster.v3.Cluster.EdsClusterConfig eds_config service_name
envoy.config.cluster.v3.Cluster.CommonLbConfig healthy_panic_threshold update_merge_window locality_weighted_lb_config
envoy.config.cluster.v3.Cluster.CommonLbConfig.LocalityWeightedLbConfig
envoy.config.cluster.v3.Cluster.TransportSocketMatch name match transport_socket
envoy.config.cluster.v3.CircuitBreakers *
envoy.config.cluster.v3.OutlierDetection *
envoy.config.core.v3.HealthCheck timeout interval initial_jitter interval_jitter unhealthy_threshold healthy_threshold no_traffic_interval no_traffic_healthy_interval unhealthy_interval unhealthy_edge_interval healthy_edge_interval reuse_connection http_health_check grpc_health_check tcp_health_check
envoy.config.core.v3.HealthCheck.HttpHealthCheck *
envoy.config.core.v3.HealthCheck.GrpcHealthCheck *
envoy.config.core.v3.HealthCheck.TcpHealthCheck *
envoy.extensions.upstreams.http.v3.HttpProtocolOptions explicit_http_config http_filters
envoy.extensions.upstreams.http.v3.HttpProtocolOptions.ExplicitHttpConfig http_protocol_options http2_protocol_options
`

const endpointWords = `
envoy.config.endpoint.v3.ClusterLoadAssignment cluster_name endpoints
envoy.config.endpoint.v3.LocalityLbEndpoints locality lb_endpoints load_balancing_weight priority
envoy.config.endpoint.v3.LbEndpoint endpoint health_status metadata load_balancing_weight
envoy.config.endpoint.v3.Endpoint address additional_addresses health_check_config
envoy.config.endpoint.v3.Endpoint.AdditionalAddress address
envoy.config.endpoint.v3.Endpoint.HealthCheckConfig address
envoy.config.core.v3.Address socket_address envoy_internal_address
envoy.config.core.v3.SocketAddress address port_value
envoy.config.core.v3.EnvoyInternalAddress server_listener_name endpoint_id
`

const tlsWords = `
envoy.config.core.v3.TransportSocket name typed_config
envoy.extensions.transport_sockets.internal_upstream.v3.InternalUpstreamTransport transport_socket
envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer
envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext common_tls_context sni
envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext common_tls_context require_client_certificate
envoy.extensions.transport_sockets.tls.v3.CommonTlsContext tls_params alpn_protocols tls_certificate_sds_secret_configs validation_context validation_context_sds_secret_config
envoy.extensions.transport_sockets.tls.v3.TlsParameters *
envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig name sds_config
envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext custom_validator_config match_typed_subject_alt_names trusted_ca watched_directory
envoy.extensions.transport_sockets.tls.v3.SubjectAltNameMatcher san_type matcher
envoy.extensions.transport_sockets.tls.v3.SPIFFECertValidatorConfig trust_domains
envoy.extensions.transport_sockets.tls.v3.SPIFFECertValidatorConfig.TrustDomain name trust_bundle
envoy.extensions.transport_sockets.tls.v3.Secret name tls_certificate validation_context
envoy.extensions.transport_sockets.tls.v3.TlsCertificate certificate_chain private_key watched_directory
`

const plainWords = `
envoy.config.core.v3.ConfigSource resource_api_version ads self
envoy.config.core.v3.AggregatedConfigSource
envoy.config.core.v3.SelfConfigSource *
envoy.config.core.v3.TypedExtensionConfig name typed_config
envoy.config.core.v3.HeaderValueOption header append_action
envoy.config.core.v3.HeaderValue key value
envoy.config.core.v3.DataSource filename inline_string
envoy.config.core.v3.SubstitutionFormatString text_format_source content_type
envoy.config.core.v3.WatchedDirectory *
envoy.config.core.v3.Metadata filter_metadata
envoy.config.core.v3.Locality *
envoy.config.core.v3.BackoffStrategy *
envoy.config.core.v3.HttpProtocolOptions *
envoy.config.core.v3.Http1ProtocolOptions *
envoy.config.core.v3.Http2ProtocolOptions *
envoy.type.matcher.v3.StringMatcher exact prefix contains ignore_case
envoy.type.v3.Percent *
google.protobuf.BoolValue *
google.protobuf.Duration *
google.protobuf.Struct *
google.protobuf.UInt32Value *
google.protobuf.UInt64Value *
`

// reading looks for what is not understood, or not valid, in a message and all that is packed into it.
type reading struct {
	strange map[string]bool // fields and types outside of the vocabulary
	invalid error           // what the first packed message that breaks the rules of its type says
	sound   map[content]bool
}

// content is what a packed message holds.
type content struct{ url, value string }

// strangers are the fields and types in a message that are outside of the vocabulary, sorted, and what is invalid in it.
// sound are packed messages that are known to be neither; it grows: most are in many others.
func strangers(m proto.Message, sound map[content]bool) (strange []string, invalid error) {
	r := reading{strange: map[string]bool{}, sound: sound}
	r.message(m.ProtoReflect())
	return sortedKeys(r.strange), r.invalid
}

func (r *reading) message(m protoreflect.Message) {
	if a, ok := m.Interface().(*anypb.Any); ok {
		r.unpack(a)
		return
	}
	name := m.Descriptor().FullName()
	words, known := vocabulary[name]
	switch {
	case !known:
		r.strange[string(name)] = true
		return
	case len(m.GetUnknown()) > 0:
		r.strange[string(name)+" with fields of a newer API"] = true
	case len(words) == 1 && words[0] == anyField:
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !slices.Contains(words, string(f.Name())) {
			r.strange[string(f.FullName())] = true
			return true
		}
		r.field(f, v)
		return true
	})
}

func (r *reading) field(f protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch {
	case f.IsMap():
		if f.MapValue().Message() != nil {
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { r.message(v.Message()); return true })
		}
	case f.Message() == nil:
	case f.IsList():
		for i := range v.List().Len() {
			r.message(v.List().Get(i).Message())
		}
	default:
		r.message(v.Message())
	}
}

func (r *reading) unpack(a *anypb.Any) {
	if r.sound[content{a.TypeUrl, string(a.Value)}] {
		return
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByURL(a.GetTypeUrl())
	if err != nil {
		r.strange[typeOf(a.GetTypeUrl())] = true
		return
	}
	m := kind.New().Interface()
	if err := proto.Unmarshal(a.GetValue(), m); err != nil {
		r.invalid = err
		return
	}
	if v, ok := m.(interface{ ValidateAll() error }); ok && r.invalid == nil {
		r.invalid = v.ValidateAll()
	}
	r.message(m.ProtoReflect())
	if r.invalid == nil && len(r.strange) == 0 {
		r.sound[content{a.TypeUrl, string(a.Value)}] = true
	}
}
