package mesh

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// writePolicies writes the policy folder of the mesh.
func (m *Mesh) writePolicies() error {
	var b strings.Builder
	object := func(kind, name, spec string) {
		fmt.Fprintf(&b, "---\napiVersion: meridian.dev/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", kind, name, spec)
	}
	seen := map[string]bool{}
	var pools []string
	for _, c := range m.clusters {
		if c.removed {
			continue
		}
		if !seen[c.Region] {
			object("Region", c.Region, fmt.Sprintf("{cloud: %s}", c.Cloud))
		}
		seen[c.Region] = true
		gateways := ""
		if !m.config.Flat {
			gateways = fmt.Sprintf(", gateways: [{address: %s, port: %d}]", c.wide.Addr(), c.wide.Port())
		}
		kubernetes := ""
		if m.config.Kubernetes {
			kubernetes = fmt.Sprintf(", kubernetes: {kubeconfig: %s, staleAfter: 2s}", c.kubeconfig())
		}
		object("Cluster", c.Name, fmt.Sprintf("{region: %s%s%s%s}", c.Region, gateways, kubernetes, c.drain))
		var endpoints []string
		for _, s := range c.servers {
			endpoints = append(endpoints, fmt.Sprintf("{address: %s, port: %d}", s.Addr().Addr(), s.Addr().Port()))
		}
		if m.config.Kubernetes {
			pools = append(pools, fmt.Sprintf("{cluster: %s, from: {namespace: %s, name: %s}}", c.Name, podNamespace, ServiceName))
		} else if len(endpoints) > 0 {
			pools = append(pools, fmt.Sprintf("{cluster: %s, endpoints: [%s]}", c.Name, strings.Join(endpoints, ", ")))
		}
		object("Gateway", "edge-"+c.Name, m.gatewaySpec(c))
	}
	service := strings.TrimSuffix(m.config.Service, "}")
	object("Service", ServiceName, fmt.Sprintf("%s, pools: [%s]}", service, strings.Join(pools, ", ")))
	b.WriteString(m.config.Policies)
	return os.WriteFile(filepath.Join(m.dir, "policies", "mesh.yaml"), []byte(b.String()), 0o600)
}

// Drain has the policies say that the cluster is to be emptied over a time.
func (c *Member) Drain(over time.Duration) error {
	c.drain = fmt.Sprintf(", drain: true, drainOver: %s", over)
	return c.mesh.writePolicies()
}

// Remove takes the cluster out of the policies, with its pool and its gateway. Its processes go on.
func (c *Member) Remove() error {
	c.removed = true
	return c.mesh.writePolicies()
}

// gatewaySpec is the Gateway policy of one cluster: on one machine each needs ports and files of its own.
func (m *Mesh) gatewaySpec(c *Member) string {
	location := fmt.Sprintf("{source: GeoIP, database: %s}", filepath.Join(m.dir, "country.mmdb"))
	if m.config.GeoService {
		location = fmt.Sprintf("{source: GeoService, service: {address: %s, port: %d}}", m.plane.XDS().Addr(), m.plane.XDS().Port())
	}
	certificate, key := filepath.Join(c.dir, "tls.crt"), filepath.Join(c.dir, "tls.key")
	tls := ""
	if m.config.TLS {
		tls = fmt.Sprintf(", tls: {certificateFile: %s, privateKeyFile: %s}", certificate, key)
	}
	spec := fmt.Sprintf("{proxies: {clusters: [%s]}, listeners: [{name: http, address: %s, port: %d%s}], trustedHops: 1, location: %s",
		c.Name, c.HTTP.Addr(), c.HTTP.Port(), tls, location)
	if !m.config.Flat {
		spec += fmt.Sprintf(", eastWest: {address: %s, port: %d, certificateFile: %s, privateKeyFile: %s, trustBundleDir: %s}",
			c.eastWest.Addr(), c.eastWest.Port(), certificate, key, filepath.Join(m.dir, "bundles"))
	}
	if m.config.Gateway != "" {
		spec += ", " + m.config.Gateway
	}
	return spec + "}"
}
