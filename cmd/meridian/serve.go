package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/meridian-mesh/meridian/internal/controlplane"
)

func newServe() *cobra.Command {
	var config controlplane.Config
	var level slog.Level
	var peers peerFlags
	c := &cobra.Command{
		Use: "serve --policies FOLDER", Short: "Run the control plane",
		Long: `Run one replica of the control plane: watch the policies, probe the endpoints, plan, verify, and serve xDS.
Logs are JSON lines on standard error. SIGTERM drains and ends it.`,
		Example: "  meridian serve --policies policies/\n  curl -s 127.0.0.1:18001/readyz",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVar(&config.Policies, "policies", "", "folder of policy files (required)")
	c.Flags().StringVar(&config.XDS, "xds-address", "127.0.0.1:18000", "where proxies connect: xDS, load reports, geo service")
	c.Flags().StringVar(&config.HTTP, "http-address", "127.0.0.1:18001", "where /metrics, /healthz, /readyz and /api/v1/status are")
	c.Flags().BoolVar(&config.AllowPlaintext, "allow-plaintext", false, "allow an xDS address that is not loopback, in plaintext")
	peers.add(c)
	addTuning(c, &config)
	c.Flags().StringVar(&config.GeoDatabase, "geo-database", "", "MMDB of the geo service (default: the embedded demo database)")
	c.Flags().StringVar(&config.StateDir, "state-dir", "", "folder to keep what is published in, to serve it after a restart with nothing reachable (default: keep nothing)")
	c.Flags().StringVar(&config.Kubeconfig, "kubeconfig", "", "reaches the cluster in which the control plane runs, for Secrets with kubeconfigs of member clusters (default: the pod's service account)")
	c.Flags().TextVar(&level, "log-level", slog.LevelInfo, "debug, info, warn or error")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if config.Policies == "" {
			return usage("--policies is required: the folder of policy files")
		}
		if err := peers.apply(&config); err != nil {
			return err
		}
		config.Log = slog.New(slog.NewJSONHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
		plane, err := controlplane.New(config)
		if err != nil {
			return err
		}
		return plane.Run(c.Context())
	}
	return c
}
