package policies_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meridian-mesh/meridian/policies"
)

// mesh is a set of clusters, each in its region, with one service. An entry is "cluster region", and further fields of the Cluster's
// spec; a gateway serves all, or with each a gateway each.
func mesh(t *testing.T, each bool, clusters ...string) *policies.Set {
	t.Helper()
	var b strings.Builder
	object := func(kind, name, spec string) {
		fmt.Fprintf(&b, "---\napiVersion: meridian.dev/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", kind, name, spec)
	}
	cloud := map[string]string{"frankfurt": "aws/eu-central-1", "dublin": "aws/eu-west-1", "virginia": "aws/us-east-1"}
	seen, pools := map[string]bool{}, []string{}
	for _, c := range clusters {
		word := strings.SplitN(c, " ", 3)
		more := ""
		if len(word) > 2 {
			more = ", " + word[2]
		}
		if !seen[word[1]] {
			object("Region", word[1], "{cloud: "+cloud[word[1]]+"}")
		}
		seen[word[1]] = true
		object("Cluster", word[0], "{region: "+word[1]+more+"}")
		if strings.Contains(more, "kubernetes") {
			pools = append(pools, "{cluster: "+word[0]+", from: {namespace: m, name: llama}}")
		} else {
			pools = append(pools, fmt.Sprintf("{cluster: %s, endpoints: [{address: 127.0.0.%d, port: 80}]}", word[0], word[0][0]-'a'+1))
		}
		if each {
			object("Gateway", "edge-"+word[0], "{proxies: {clusters: ["+word[0]+"]}, listeners: [{name: http, port: 8080}]}")
		}
	}
	if !each {
		object("Gateway", "edge", "{listeners: [{name: http, port: 8080}]}")
	}
	object("Service", "llama", "{models: [llama], pools: ["+strings.Join(pools, ", ")+"]}")
	set, diagnostics := policies.Parse([]policies.File{{Name: "mesh.yaml", Bytes: []byte(b.String())}})
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	return set
}

// summary are the objects of a set by name, drained clusters with a "-".
func summary(s *policies.Set) (names []string) {
	for _, r := range s.Regions {
		names = append(names, string(r.Metadata.Name))
	}
	for _, c := range s.Clusters {
		name := string(c.Metadata.Name)
		if c.Spec.Drain {
			name = "-" + name
		}
		names = append(names, name)
	}
	for _, v := range s.Services {
		for _, p := range v.Spec.Pools {
			names = append(names, string(v.Metadata.Name)+"@"+string(p.Cluster))
		}
	}
	for _, g := range s.Gateways {
		names = append(names, string(g.Metadata.Name))
	}
	return names
}

func all(policies.ClusterName) bool { return true }

func TestWithRetiring(t *testing.T) {
	for name, c := range map[string]struct {
		before, after *policies.Set
		want          []string
	}{
		"a cluster with its region and its gateway": {
			mesh(t, true, "a frankfurt", "b dublin", "c virginia"), mesh(t, true, "a frankfurt", "c virginia"),
			[]string{"dublin", "frankfurt", "virginia", "a", "-b", "c", "llama@a", "llama@c", "llama@b", "edge-a", "edge-b", "edge-c"},
		},
		"a gateway for all stays one": {
			mesh(t, false, "a frankfurt", "b frankfurt"), mesh(t, false, "a frankfurt"),
			[]string{"frankfurt", "a", "-b", "llama@a", "llama@b", "edge"},
		},
		"none has gone": {
			mesh(t, false, "a frankfurt"), mesh(t, false, "a frankfurt", "b frankfurt"),
			[]string{"frankfurt", "a", "b", "llama@a", "llama@b", "edge"},
		},
		"it has another name": { // whose first letter gives it the same address
			mesh(t, false, "a frankfurt", "b frankfurt"), mesh(t, false, "a frankfurt", "bb frankfurt"),
			[]string{"frankfurt", "a", "bb", "llama@a", "llama@bb", "edge"},
		},
		"its API server has another name": {
			mesh(t, false, "a frankfurt", "b frankfurt kubernetes: {kubeconfig: /b}"), mesh(t, false, "a frankfurt", "c frankfurt kubernetes: {kubeconfig: /b}"),
			[]string{"frankfurt", "a", "c", "llama@a", "llama@c", "edge"},
		},
		"its gateways are another's": {
			mesh(t, false, "a frankfurt", "b frankfurt gateways: [{address: 127.1.0.1, port: 1}]"), mesh(t, false, "a frankfurt", "c frankfurt gateways: [{address: 127.1.0.1, port: 1}]"),
			[]string{"frankfurt", "a", "c", "llama@a", "llama@c", "edge"},
		},
	} {
		unchanged := summary(c.after)
		got := c.after.WithRetiring(c.before, all)
		if diff := cmp.Diff(c.want, summary(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(unchanged, summary(c.after)); diff != "" {
			t.Errorf("%s: the set itself has changed (-before +after):\n%s", name, diff)
		}
		if retires := len(summary(got)) > len(unchanged); retires == (got == c.after) || retires == (got.Hash == c.after.Hash) {
			t.Errorf("%s: hash %s of %s", name, got.Hash, c.after.Hash)
		}
		if got := c.after.WithRetiring(c.before, func(policies.ClusterName) bool { return false }); got != c.after {
			t.Errorf("%s: something is kept that need not be", name)
		}
	}
}

// What retires goes on to be found by name, and its proxies find their gateway.
func TestWhatRetiresIsFound(t *testing.T) {
	got := mesh(t, true, "a frankfurt", "c virginia").WithRetiring(mesh(t, true, "a frankfurt", "b dublin", "c virginia"), all)
	for _, c := range []policies.ClusterName{"a", "b", "c"} {
		cluster, ok := got.Cluster(c)
		if !ok || cluster.Metadata.Name != c {
			t.Fatalf("cluster %s is not found", c)
		}
		if _, ok := got.Region(cluster.Spec.Region); !ok {
			t.Errorf("the region of %s is not found", c)
		}
		g, ok := got.GatewayFor(policies.RoleGateway, cluster.Spec.Region, c)
		if !ok || g.Metadata.Name != policies.GatewayName("edge-"+c) {
			t.Errorf("the gateway of %s is %+v", c, g)
		}
	}
}
