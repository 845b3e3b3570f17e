package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/meridian-mesh/meridian/bench/kube/stub"
	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// regions are where the clusters are, in turn.
var regions = []string{"eu-central-1", "eu-west-1", "us-east-1", "ap-southeast-1"}

// policyText is a folder's only file: all clusters behind gateways, and every service with a pool in each of them. Pods can't be reached,
// so that nothing is probed: what is measured is what clusters say.
func policyText(s size, folder string) string {
	var b strings.Builder
	object := func(kind, name, spec string) {
		fmt.Fprintf(&b, "---\napiVersion: meridian.dev/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", kind, name, spec)
	}
	for _, r := range regions[:min(len(regions), s.Clusters)] {
		object("Region", r, fmt.Sprintf("{cloud: aws/%s}", r))
	}
	for i := range s.Clusters {
		object("Cluster", clusterName(i), fmt.Sprintf("{region: %s, gateways: [{address: 198.51.100.%d, port: 9443}], kubernetes: {kubeconfig: %q, podsUnreachable: true}}",
			regions[i%len(regions)], i, filepath.Join(folder, clusterName(i))))
	}
	for i := range s.Services {
		name := stub.ServiceName(i)
		var pools []string
		for c := range s.Clusters {
			pools = append(pools, fmt.Sprintf("{cluster: %s, from: {namespace: %s, name: %s}}", clusterName(c), stub.Namespace(i), name))
		}
		object("Service", name, fmt.Sprintf("{models: [%s], pools: [%s]}", name, strings.Join(pools, ", ")))
	}
	object("Gateway", "edge", "{listeners: [{name: http, port: 8080}], eastWest: {port: 9443, certificateFile: /etc/meridian/svid/tls.crt, privateKeyFile: /etc/meridian/svid/tls.key, trustBundleDir: /etc/meridian/bundles}}")
	return b.String()
}

// policySet is that as a set.
func policySet(s size, folder string) (*policies.Set, error) {
	set, problems := policies.Parse([]policies.File{{Name: "bench.yaml", Bytes: []byte(policyText(s, folder))}})
	if len(problems) > 0 {
		return nil, fmt.Errorf("policies: %s", problems[0].String())
	}
	return set, nil
}

// poolOf is a service's in a cluster.
func poolOf(service, cluster int) world.PoolKey {
	return world.PoolKey{Service: policies.ServiceName(stub.ServiceName(service)), Cluster: policies.ClusterName(clusterName(cluster))}
}
