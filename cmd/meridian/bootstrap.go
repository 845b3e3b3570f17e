package main

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/bootstrap"
)

// bootstrapFlags say who a proxy is, as written on the command line.
type bootstrapFlags struct {
	cluster, region, id, admin string
	as                         role
	tenants, servers           []string
	full                       bool
	tls                        bootstrap.TLS
}

func newBootstrap() *cobra.Command {
	var f bootstrapFlags
	c := &cobra.Command{
		Use: "bootstrap --cluster CLUSTER --id ID", Short: "Print the bootstrap with which an Envoy joins",
		Long: `Print the bootstrap with which an Envoy joins. With --xds-ca it joins over TLS, and the files that tell Envoy which
certificates and tokens to follow are written into --secret-dir.`,
		Example: "  meridian bootstrap --cluster fra-1 --region frankfurt --id fra-gateway-0 > envoy.yaml\n  envoy -c envoy.yaml",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVar(&f.cluster, "cluster", "", "the Cluster that the proxy is in (required)")
	c.Flags().StringVar(&f.region, "region", "", "the Cluster's Region; checked where given")
	addRole(c, &f.as)
	c.Flags().StringSliceVar(&f.tenants, "tenant", nil, "the tenants that the proxy may serve (default: all)")
	c.Flags().StringVar(&f.id, "id", "", "the node id, unique among all proxies (required)")
	c.Flags().StringSliceVar(&f.servers, "server", []string{"127.0.0.1:18000"}, "addresses of Meridian's xDS port, one for each replica")
	c.Flags().StringVar(&f.admin, "admin", "", "address of Envoy's own admin interface; none if empty")
	c.Flags().BoolVar(&f.full, "state-of-the-world", false, "use the state-of-the-world protocol instead of delta")
	c.Flags().StringVar(&f.tls.CAFile, "xds-ca", "", "PEM bundle that vouches for Meridian, on the proxy's disk; plaintext if empty")
	c.Flags().StringVar(&f.tls.CertificateFile, "cert", "", "the proxy's certificate with its SPIFFE ID, on the proxy's disk")
	c.Flags().StringVar(&f.tls.KeyFile, "key", "", "its key, on the proxy's disk")
	c.Flags().StringVar(&f.tls.TokenFile, "token", "", "instead of a certificate: a token of the proxy's Kubernetes service account, on the proxy's disk")
	c.Flags().StringVar(&f.tls.ServerName, "xds-name", "", "the SPIFFE ID or DNS name that Meridian's certificate must have (default: the addresses of --server)")
	c.Flags().StringVar(&f.tls.SecretDir, "secret-dir", ".", "folder for the files that tell Envoy which certificates and tokens to follow")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := f.config()
		if err != nil {
			return err
		}
		out, err := bootstrap.New(config)
		if err != nil {
			return err
		}
		if config.TLS != nil {
			if err := writeSecrets(*config.TLS); err != nil {
				return err
			}
		}
		_, err = fmt.Fprint(c.OutOrStdout(), string(out))
		return err
	}
	return c
}

// config reads the flags. What is wrong with them is a wrong call.
func (f *bootstrapFlags) config() (bootstrap.Config, error) {
	if f.cluster == "" || f.id == "" {
		return bootstrap.Config{}, usage("--cluster and --id are required")
	}
	tenants := make([]policies.Tenant, len(f.tenants))
	for i, t := range f.tenants {
		tenants[i] = policies.Tenant(t)
	}
	only, err := world.MakeTenants(tenants)
	if err != nil {
		return bootstrap.Config{}, usage("--tenant: %s", err.Error())
	}
	config := bootstrap.Config{ID: f.id, StateOfTheWorld: f.full, Viewpoint: world.Viewpoint{
		Role: policies.Role(f.as), Region: policies.RegionName(f.region), Cluster: policies.ClusterName(f.cluster), Tenants: only}}
	for _, s := range f.servers {
		a, err := netip.ParseAddrPort(s)
		if err != nil {
			return bootstrap.Config{}, usage("--server: %s", err.Error())
		}
		config.Servers = append(config.Servers, a)
	}
	if f.admin != "" {
		if config.Admin, err = netip.ParseAddrPort(f.admin); err != nil {
			return bootstrap.Config{}, usage("--admin: %s", err.Error())
		}
	}
	switch given := f.tls.CertificateFile + f.tls.KeyFile + f.tls.TokenFile + f.tls.ServerName; {
	case f.tls.CAFile != "":
		config.TLS = &f.tls
	case given != "":
		return bootstrap.Config{}, usage("--xds-ca is needed as well: whoever Meridian is must be checked first")
	}
	return config, nil
}

// writeSecrets writes the files that Envoy needs beside its bootstrap.
func writeSecrets(tls bootstrap.TLS) error {
	files, err := tls.Secrets()
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(path, files[path], 0o644); err != nil {
			return fmt.Errorf("write secrets into --secret-dir: %w", err)
		}
	}
	return nil
}
