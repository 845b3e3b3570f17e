package main

import (
	"github.com/spf13/cobra"

	"github.com/meridian-mesh/meridian/internal/controlplane"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/xds/identity"
)

// peerFlags say how proxies prove who they are, as written on the command line.
type peerFlags struct {
	tls     identity.TLS
	reviews map[string]string
}

func (f *peerFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.tls.CertificateFile, "tls-cert", "", "PEM chain with which the xDS address is served; followed on disk; plaintext if empty")
	c.Flags().StringVar(&f.tls.KeyFile, "tls-key", "", "its key")
	c.Flags().StringToStringVar(&f.tls.ClientCAs, "client-ca", nil, "TRUST-DOMAIN=FILE: PEM bundle that vouches for the proxies of one cluster; followed on disk; repeat for each")
	c.Flags().StringVar(&f.tls.ClientCADir, "client-ca-dir", "", "folder with such bundles, a file TRUST-DOMAIN.pem each")
	c.Flags().StringToStringVar(&f.reviews, "token-review-kubeconfig", nil, "CLUSTER=FILE: kubeconfig of the API server that reviews the service account tokens of a cluster's proxies; repeat for each")
}

// apply puts the flags into a configuration. What is wrong with them is a wrong call.
func (f *peerFlags) apply(config *controlplane.Config) error {
	provable := len(f.tls.ClientCAs)+len(f.reviews) > 0 || f.tls.ClientCADir != ""
	switch {
	case f.tls.CertificateFile == "" && f.tls.KeyFile == "" && !provable:
		return nil
	case f.tls.CertificateFile == "" || f.tls.KeyFile == "":
		return usage("--tls-cert and --tls-key are needed together, and for every way in which proxies prove who they are")
	case !provable:
		return usage("with --tls-cert no proxy could prove who it is: give --client-ca, --client-ca-dir or --token-review-kubeconfig")
	}
	config.TLS = &f.tls
	config.TokenReviews = map[policies.ClusterName]string{}
	for cluster, kubeconfig := range f.reviews {
		config.TokenReviews[policies.ClusterName(cluster)] = kubeconfig
	}
	return nil
}
