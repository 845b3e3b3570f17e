package main

import (
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/bootstrap"
)

func newBootstrap() *cobra.Command {
	var cluster, region, id, admin string
	var as role
	var servers []string
	var full bool
	c := &cobra.Command{
		Use: "bootstrap --cluster CLUSTER --id ID", Short: "Print the bootstrap with which an Envoy joins",
		Example: "  meridian bootstrap --cluster fra-1 --region frankfurt --id fra-gateway-0 > envoy.yaml\n  envoy -c envoy.yaml",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVar(&cluster, "cluster", "", "the Cluster that the proxy is in (required)")
	c.Flags().StringVar(&region, "region", "", "the Cluster's Region; checked where given")
	addRole(c, &as)
	c.Flags().StringVar(&id, "id", "", "the node id, unique among all proxies (required)")
	c.Flags().StringSliceVar(&servers, "server", []string{"127.0.0.1:18000"}, "addresses of Meridian's xDS port, one for each replica")
	c.Flags().StringVar(&admin, "admin", "", "address of Envoy's own admin interface; none if empty")
	c.Flags().BoolVar(&full, "state-of-the-world", false, "use the state-of-the-world protocol instead of delta")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if cluster == "" || id == "" {
			return usage("--cluster and --id are required")
		}
		config := bootstrap.Config{ID: id, StateOfTheWorld: full, Viewpoint: world.Viewpoint{
			Role: policies.Role(as), Region: policies.RegionName(region), Cluster: policies.ClusterName(cluster)}}
		var err error
		for _, s := range servers {
			a, err := netip.ParseAddrPort(s)
			if err != nil {
				return usage("--server: %v", err.Error())
			}
			config.Servers = append(config.Servers, a)
		}
		if admin != "" {
			if config.Admin, err = netip.ParseAddrPort(admin); err != nil {
				return usage("--admin: %v", err.Error())
			}
		}
		out, err := bootstrap.New(config)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(c.OutOrStdout(), string(out))
		return err
	}
	return c
}
