package policies

import "net/netip"

// Gateway says which proxies get which listeners, and how they learn who is calling from where.
type Gateway struct {
	Metadata Metadata[GatewayName] `json:"metadata"`
	Spec     GatewaySpec           `json:"spec"`
	Origin   Origin                `json:"-"`
}

// GatewaySpec configures the proxies that it selects. Two gateways must not select the same proxies.
type GatewaySpec struct {
	// Proxies says which proxies this is for.
	Proxies ProxySelector `json:"proxies,omitempty"`
	// Listeners are for clients: at least one.
	Listeners []Listener `json:"listeners" jsonschema:"minItems=1"`
	// EastWest is the listener for other clusters' gateways, and this proxy's identity towards them. Without it,
	// other clusters that have gateway addresses are out of reach from here, and nothing is offered to them.
	EastWest *EastWest `json:"eastWest,omitempty"`
	// TrustedHops is how many proxies in front are trusted to have appended to x-forwarded-for. Default 0: the
	// client is the peer of the connection.
	TrustedHops int `json:"trustedHops,omitempty" jsonschema:"minimum=0,maximum=16"`
	// Location says how a client's country is found.
	Location LocationSource `json:"location,omitempty"`
	// TenantHeader is the request header from which the tenant is read. Only for gateways behind a proxy that
	// authenticates and always sets it. Default: none, and then no rule may match tenants.
	TenantHeader string `json:"tenantHeader,omitempty" jsonschema:"pattern=^[a-z0-9_-]+$"`
	// DataLabelHeader is the request header with the data's label. Default "x-data-label".
	DataLabelHeader string `json:"dataLabelHeader,omitempty" jsonschema:"pattern=^[a-z0-9_-]+$"`
	// MaxBodyBytes is the largest request body; over it a request gets 413. Default 16 MiB.
	MaxBodyBytes int64 `json:"maxBodyBytes,omitempty" jsonschema:"minimum=1024,maximum=1073741824"`
	// ResponseHeaders says whether responses carry x-meridian-cluster, -region and -reason. Default true.
	ResponseHeaders *bool `json:"responseHeaders,omitempty"`
}

// Role is what a proxy is for.
type Role string

// The roles of proxies.
const (
	// RoleGateway is at a cluster's edge. The default.
	RoleGateway Role = "gateway"
	// RoleSidecar is beside one client workload.
	RoleSidecar Role = "sidecar"
)

// ProxySelector selects proxies: every field given must match; within a field, one value must.
type ProxySelector struct {
	// Roles defaults to gateway.
	Roles []Role `json:"roles,omitempty" jsonschema:"uniqueItems=true"`
	// Regions: none, any.
	Regions []RegionName `json:"regions,omitempty" jsonschema:"uniqueItems=true"`
	// Clusters: none, any.
	Clusters []ClusterName `json:"clusters,omitempty" jsonschema:"uniqueItems=true"`
}

// Listener is an address on which clients are served.
type Listener struct {
	// Name is unique within the gateway.
	Name string `json:"name" jsonschema:"maxLength=63,pattern=^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
	// Address defaults to 127.0.0.1.
	Address netip.Addr `json:"address,omitempty"`
	// Port is for HTTP, gRPC and OpenAI services. TCP services have a port of their own on the same address.
	Port uint16 `json:"port"`
	// Services are those offered here; none: all.
	Services []ServiceName `json:"services,omitempty" jsonschema:"uniqueItems=true"`
	// TLS serves HTTPS where given.
	TLS *TLS `json:"tls,omitempty"`
}

// TLS names files on the proxy's own disk, so that no private key passes through the control plane. Proxies reload
// them when they change.
type TLS struct {
	// CertificateFile is a PEM chain.
	CertificateFile string `json:"certificateFile"`
	// PrivateKeyFile is its PEM key.
	PrivateKeyFile string `json:"privateKeyFile"`
	// ClientCAFile, where given, requires a client certificate that it signed.
	ClientCAFile string `json:"clientCAFile,omitempty"`
}

// EastWest is the listener for other clusters' gateways.
type EastWest struct {
	// Address defaults to 127.0.0.1.
	Address netip.Addr `json:"address,omitempty"`
	// Port is where this cluster's gateway addresses lead.
	Port uint16 `json:"port"`
	// CertificateFile is this proxy's X.509-SVID chain: URI SAN spiffe://TRUST-DOMAIN/...
	CertificateFile string `json:"certificateFile"`
	// PrivateKeyFile is its PEM key.
	PrivateKeyFile string `json:"privateKeyFile"`
	// TrustBundleDir holds a file TRUST-DOMAIN.pem for each trust domain.
	TrustBundleDir string `json:"trustBundleDir"`
}

// LocationKind is a way to find a client's country.
type LocationKind string

// The ways to find a client's country.
const (
	// LocationNone finds none: no rule may match countries. The default.
	LocationNone LocationKind = "None"
	// LocationGeoIP looks it up in an MMDB on the proxy's disk, inside Envoy.
	LocationGeoIP LocationKind = "GeoIP"
	// LocationGeoService asks Meridian's geo service over ext_authz.
	LocationGeoService LocationKind = "GeoService"
)

// LocationSource says how a client's country is found.
type LocationSource struct {
	// Source defaults to None.
	Source LocationKind `json:"source,omitempty"`
	// Database is the path of a GeoIP2 country or city MMDB on the proxy's disk. GeoIP only.
	Database string `json:"database,omitempty"`
	// Service is the address of the geo service. GeoService only.
	Service *Address `json:"service,omitempty"`
}
