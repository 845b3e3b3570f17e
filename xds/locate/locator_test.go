package locate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/meridian-mesh/meridian/geo"
)

// lookup knows one German address.
func lookup(a netip.Addr) (geo.Place, netip.Prefix, error) {
	switch a.String() {
	case "192.0.2.7", "2001:db8::7":
		return geo.Place{Country: "DE"}, netip.Prefix{}, nil
	case "203.0.113.9":
		return geo.Place{}, netip.Prefix{}, errors.New("the database is broken")
	}
	return geo.Place{}, netip.Prefix{}, nil
}

func TestCheck(t *testing.T) {
	l, err := New(Config{Lookup: lookup})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		peer, forwarded, hops string
		want                  string
	}{
		"the peer":                                 {"192.0.2.7", "", "", "DE"},
		"IPv6":                                     {"2001:db8::7", "", "", "DE"},
		"unknown":                                  {"198.18.0.1", "", "", ""},
		"not an address":                           {"somewhere", "", "", ""},
		"lookup fails":                             {"203.0.113.9", "", "", ""},
		"no hop is trusted, so forwarded is not":   {"198.18.0.1", "192.0.2.7, 198.18.0.1", "0", ""},
		"one trusted hop":                          {"127.0.0.1", "192.0.2.7, 127.0.0.1", "1", "DE"},
		"one trusted hop, and the client lies":     {"127.0.0.1", "192.0.2.7, 198.18.0.1, 127.0.0.1", "1", ""},
		"two trusted hops":                         {"127.0.0.1", "192.0.2.7, 198.18.0.1, 127.0.0.1", "2", "DE"},
		"fewer entries than hops: the peer":        {"192.0.2.7", "192.0.2.7", "1", "DE"},
		"hops that are no number trust no one":     {"198.18.0.1", "192.0.2.7, 198.18.0.1", "many", ""},
		"negative hops trust no one":               {"198.18.0.1", "192.0.2.7, 198.18.0.1", "-1", ""},
		"an entry that is no address is not a way": {"192.0.2.7", "unknown, 192.0.2.7", "1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			if c.hops != "" {
				ctx = metadata.NewIncomingContext(ctx, metadata.Pairs(MetadataTrustedHops, c.hops))
			}
			answer, err := l.Check(ctx, &auth.CheckRequest{Attributes: &auth.AttributeContext{
				Source:  &auth.AttributeContext_Peer{Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{Address: c.peer}}}},
				Request: &auth.AttributeContext_Request{Http: &auth.AttributeContext_HttpRequest{Headers: map[string]string{"x-forwarded-for": c.forwarded}}},
			}})
			if err != nil || codes.Code(answer.GetStatus().GetCode()) != codes.OK {
				t.Fatalf("refused: %v %v", answer, err)
			}
			got := ""
			for _, h := range answer.GetOkResponse().GetHeaders() {
				got = h.GetHeader().GetValue()
			}
			removed := len(answer.GetOkResponse().GetHeadersToRemove()) == 1
			if got != c.want || removed != (c.want == "") {
				t.Errorf("country %q, header removed %v; want %q", got, removed, c.want)
			}
		})
	}
}

func TestNoAddressIsLogged(t *testing.T) {
	for client, want := range map[string]string{"203.0.113.9": "203.0.113.0/24", "2001:db8:1:2::9": "2001:db8:1::/48"} {
		var log strings.Builder
		l, err := New(Config{
			Lookup: func(a netip.Addr) (geo.Place, netip.Prefix, error) {
				network := netip.PrefixFrom(a, a.BitLen())
				return geo.Place{}, network, fmt.Errorf("geo lookup in %s: broken", network)
			},
			Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		l.country(netip.MustParseAddr(client))
		if strings.Contains(log.String(), client) || !strings.Contains(log.String(), want) {
			t.Errorf("logged %q, want %s and not the client", log.String(), want)
		}
	}
}

func TestNewWantsALookup(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("accepted")
	}
}
