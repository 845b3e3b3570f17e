package locate

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

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

// MetadataTrustedHops is the gRPC metadata by which a gateway says how many proxies in front of it are trusted to have
// appended to x-forwarded-for.
const MetadataTrustedHops = "meridian-trusted-hops"

// Check sets the country header to the country of the client's address. Where that is not known the header is removed.
func (l *Locator) Check(ctx context.Context, request *auth.CheckRequest) (*auth.CheckResponse, error) {
	ok := &auth.OkHttpResponse{}
	if country := l.country(clientOf(request, trustedHops(ctx))); country != "" {
		ok.Headers = []*core.HeaderValueOption{{Header: &core.HeaderValue{Key: xds.HeaderCountry, Value: string(country)}, AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD}}
	} else {
		ok.HeadersToRemove = []string{xds.HeaderCountry}
	}
	return &auth.CheckResponse{Status: &status.Status{Code: int32(codes.OK)}, HttpResponse: &auth.CheckResponse_OkResponse{OkResponse: ok}}, nil
}

// trustedHops is what the gateway says; 0 where it says nothing that makes sense.
func trustedHops(ctx context.Context) int {
	values := metadata.ValueFromIncomingContext(ctx, MetadataTrustedHops)
	if len(values) != 1 {
		return 0
	}
	hops, err := strconv.Atoi(values[0])
	if err != nil {
		return 0
	}
	return max(hops, 0)
}

// clientOf is the client's address: the peer of the connection, or, behind trusted hops, the entry of x-forwarded-for that
// the outermost of them appended. Envoy has appended the peer already. It is the zero Addr where there is none to trust.
func clientOf(request *auth.CheckRequest, hops int) netip.Addr {
	source := request.GetAttributes().GetSource().GetAddress().GetSocketAddress().GetAddress()
	if hops > 0 {
		entries := strings.Split(request.GetAttributes().GetRequest().GetHttp().GetHeaders()["x-forwarded-for"], ",")
		if len(entries) > hops {
			source = strings.TrimSpace(entries[len(entries)-1-hops])
		}
	}
	address, err := netip.ParseAddr(source)
	if err != nil {
		return netip.Addr{}
	}
	return address
}

func (l *Locator) country(address netip.Addr) geo.Country {
	if !address.IsValid() {
		return ""
	}
	place, network, err := l.config.Lookup(address)
	if err != nil { // its text may name a network of one address
		l.config.Log.Warn("location not looked up: the database may be damaged", "network", coarse(network))
		return ""
	}
	return place.Country
}

// coarse widens a network until it names no client.
func coarse(network netip.Prefix) netip.Prefix {
	widest := 24
	if network.Addr().Is6() {
		widest = 48
	}
	if network.Bits() <= widest {
		return network
	}
	return netip.PrefixFrom(network.Addr(), widest).Masked()
}
