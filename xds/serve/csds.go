package serve

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"

	admin "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusservice "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/meridian-mesh/meridian/xds"
)

// RegisterStatus offers the client status discovery service (envoy.service.status.v3), by which existing tools read what each
// proxy holds. It shows all configuration, so it belongs where operators are, not where proxies connect.
func (s *Server) RegisterStatus(r grpc.ServiceRegistrar) {
	statusservice.RegisterClientStatusDiscoveryServiceServer(r, clientStatus{s: s})
}

type clientStatus struct {
	statusservice.UnimplementedClientStatusDiscoveryServiceServer
	s *Server
}

// StreamClientStatus answers each request of a stream.
func (c clientStatus) StreamClientStatus(stream statusservice.ClientStatusDiscoveryService_StreamClientStatusServer) error {
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		response, err := c.FetchClientStatus(stream.Context(), request)
		if err != nil {
			return err
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

// mostListed is how many resources one answer may list.
const mostListed = 200_000

// FetchClientStatus lists what the proxies that match hold, all of them where nothing says which.
func (c clientStatus) FetchClientStatus(_ context.Context, request *statusservice.ClientStatusRequest) (*statusservice.ClientStatusResponse, error) {
	wanted, err := nodeMatch(request.GetNodeMatchers())
	if err != nil {
		return nil, err
	}
	out, listed := &statusservice.ClientStatusResponse{}, 0
	for _, st := range c.s.connected() {
		if !wanted(st.proxy.node) {
			continue
		}
		config := st.clientConfig(!request.GetExcludeResourceContents())
		if listed += len(config.GetGenericXdsConfigs()); listed > mostListed {
			return nil, status.Errorf(codes.ResourceExhausted, "more than %d resources: say which proxies are meant by node_matchers with a node_id", mostListed)
		}
		out.Config = append(out.Config, config)
	}
	return out, nil
}

// clientConfig is what one client holds.
func (st *stream) clientConfig(contents bool) *statusservice.ClientConfig {
	v := st.proxy.viewpoint
	out := &statusservice.ClientConfig{
		Node: &core.Node{Id: st.proxy.node, Cluster: string(v.Cluster), Locality: &core.Locality{Region: string(v.Region)},
			Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{MetadataRole: structpb.NewStringValue(string(v.Role))}}},
		ClientScope: string(st.group.viewpoint),
	}
	for _, k := range st.kinds() {
		out.GenericXdsConfigs = append(out.GenericXdsConfigs, k.configs(contents)...)
	}
	return out
}

// kinds are copies of what the session knows of each type.
func (st *stream) kinds() []kind {
	st.mu.Lock()
	defer st.mu.Unlock()
	all := make([]kind, len(st.session.kinds))
	for i, k := range st.session.kinds {
		all[i] = *k
	}
	return all
}

// configs tells of each resource of a type that a client asked for.
func (k *kind) configs(contents bool) []*statusservice.ClientConfig_GenericXdsConfig {
	unanswered := map[*xds.Resource]bool{}
	for _, o := range k.outstanding {
		for _, r := range o.resources {
			unanswered[r] = true
		}
	}
	refused := map[string]*xds.Resource{}
	for _, r := range k.refused {
		refused[r.Name] = r
	}
	var all []*statusservice.ClientConfig_GenericXdsConfig
	for _, r := range k.wanted().resources {
		c := &statusservice.ClientConfig_GenericXdsConfig{TypeUrl: string(k.typ), Name: r.Name, VersionInfo: r.Version,
			ConfigStatus: statusservice.ConfigStatus_SYNCED, ClientStatus: admin.ClientResourceStatus_ACKED}
		if contents {
			c.XdsConfig = &anypb.Any{TypeUrl: string(r.Type), Value: r.Bytes}
		}
		if bad := refused[r.Name]; bad != nil {
			c.ConfigStatus, c.ClientStatus = statusservice.ConfigStatus_ERROR, admin.ClientResourceStatus_NACKED
			c.ErrorState = &admin.UpdateFailureState{VersionInfo: bad.Version, Details: k.refusal}
		} else if unanswered[r] {
			c.ConfigStatus, c.ClientStatus = statusservice.ConfigStatus_STALE, admin.ClientResourceStatus_REQUESTED
		}
		all = append(all, c)
	}
	for _, name := range missing(k.sent, k.sub.named.list()) {
		all = append(all, &statusservice.ClientConfig_GenericXdsConfig{TypeUrl: string(k.typ), Name: name,
			ConfigStatus: statusservice.ConfigStatus_NOT_SENT, ClientStatus: admin.ClientResourceStatus_DOES_NOT_EXIST})
	}
	return all
}

// nodeMatch says which nodes match any of the matchers, which may go by node_id only; all do where there are none.
func nodeMatch(matchers []*matcher.NodeMatcher) (func(node string) bool, error) {
	var matches []func(string) bool
	for _, m := range matchers {
		if len(m.GetNodeMetadatas()) > 0 {
			return nil, status.Error(codes.InvalidArgument, "node_metadatas is not understood here: match by node_id")
		}
		match, err := stringMatch(m.GetNodeId())
		if err != nil {
			return nil, err
		}
		matches = append(matches, match)
	}
	return func(node string) bool {
		for _, match := range matches {
			if match(node) {
				return true
			}
		}
		return len(matches) == 0
	}, nil
}

func stringMatch(m *matcher.StringMatcher) (func(string) bool, error) {
	fold := func(s string) string { return s }
	if m.GetIgnoreCase() {
		fold = strings.ToLower
	}
	switch p := m.GetMatchPattern().(type) {
	case nil:
		return func(string) bool { return true }, nil
	case *matcher.StringMatcher_Exact:
		return func(s string) bool { return fold(s) == fold(p.Exact) }, nil
	case *matcher.StringMatcher_Prefix:
		return func(s string) bool { return strings.HasPrefix(fold(s), fold(p.Prefix)) }, nil
	case *matcher.StringMatcher_Suffix:
		return func(s string) bool { return strings.HasSuffix(fold(s), fold(p.Suffix)) }, nil
	case *matcher.StringMatcher_Contains:
		return func(s string) bool { return strings.Contains(fold(s), fold(p.Contains)) }, nil
	case *matcher.StringMatcher_SafeRegex:
		re, err := regexp.Compile("^(?:" + p.SafeRegex.GetRegex() + ")$")
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "node_id: %s", err.Error())
		}
		return re.MatchString, nil
	}
	return nil, status.Errorf(codes.InvalidArgument, "node_id: a %T is not understood here: use exact, prefix, suffix, contains or safe_regex", m.GetMatchPattern())
}
