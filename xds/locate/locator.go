package locate

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/meridian-mesh/meridian/geo"
	"github.com/meridian-mesh/meridian/xds"
)

// Config configures a Locator.
type Config struct {
	// Lookup finds the place of an address. Required.
	Lookup func(netip.Addr) (geo.Place, netip.Prefix, error)
	// Log defaults to slog's default.
	Log *slog.Logger
}

// Locator serves envoy.service.auth.v3. It is safe for concurrent use.
type Locator struct {
	auth.UnimplementedAuthorizationServer
	config Config
}

// New makes a Locator.
func New(config Config) (*Locator, error) {
	if config.Lookup == nil {
		return nil, errors.New("locate: Config.Lookup is required")
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	return &Locator{config: config}, nil
}

// Register offers the authorization service.
func (l *Locator) Register(s grpc.ServiceRegistrar) { auth.RegisterAuthorizationServer(s, l) }

// Check sets the country header to the country of the client's address, as Envoy resolved it from the trusted hops. Where
// the country is not known the header is removed.
func (l *Locator) Check(_ context.Context, request *auth.CheckRequest) (*auth.CheckResponse, error) {
	ok := &auth.OkHttpResponse{}
	if country := l.country(request); country != "" {
		ok.Headers = []*core.HeaderValueOption{{Header: &core.HeaderValue{Key: xds.HeaderCountry, Value: string(country)}, AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD}}
	} else {
		ok.HeadersToRemove = []string{xds.HeaderCountry}
	}
	return &auth.CheckResponse{Status: &status.Status{Code: int32(codes.OK)}, HttpResponse: &auth.CheckResponse_OkResponse{OkResponse: ok}}, nil
}

func (l *Locator) country(request *auth.CheckRequest) geo.Country {
	address, err := netip.ParseAddr(request.GetAttributes().GetSource().GetAddress().GetSocketAddress().GetAddress())
	if err != nil {
		return ""
	}
	place, _, err := l.config.Lookup(address)
	if err != nil {
		l.config.Log.Warn("location not looked up", "error", "the address is not valid")
		return ""
	}
	return place.Country
}
