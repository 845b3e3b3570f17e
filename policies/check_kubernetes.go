package policies

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// kubernetes checks how a cluster's API server is reached.
func (c check) kubernetes(k *Kubernetes) {
	if k == nil {
		return
	}
	const field = "spec.kubernetes"
	ways := 0
	for _, given := range []bool{k.Kubeconfig != "", k.Secret != nil, k.InCluster} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		c.complain(field, "must say in exactly one way how the API server is reached: kubeconfig, secret or inCluster")
	}
	c.onlyWith(field+".context", k.Context != "", !k.InCluster, "kubeconfigs")
	if k.Kubeconfig != "" && k.Kubeconfig[0] != '/' {
		c.complain(field+".kubeconfig", "%q is not an absolute path", clip(k.Kubeconfig))
	}
	if s := k.Secret; s != nil {
		c.kubernetesName(field+".secret.namespace", s.Namespace)
		c.kubernetesName(field+".secret.name", s.Name)
		orDefault(&s.Key, "kubeconfig")
	}
	c.duration(field+".staleAfter", &k.StaleAfter, time.Minute, time.Second, 24*time.Hour)
	if k.Accelerators != nil {
		c.accelerators(field+".accelerators", k.Accelerators)
	}
}

// accelerators checks how accelerators are counted.
func (c check) accelerators(field string, a *Accelerators) {
	at := func(list string, i int, name ...string) string {
		return strings.Join(append([]string{fmt.Sprintf("%s.%s[%d]", field, list, i)}, name...), ".")
	}
	names := map[string][]string{}
	for i, r := range a.Resources {
		c.qualifiedName(at("resources", i, "name"), r.Name, true)
		if r.ProductLabel != "" {
			c.qualifiedName(at("resources", i, "productLabel"), r.ProductLabel, false)
		}
		names["resources"] = append(names["resources"], r.Name)
	}
	for i, d := range a.Drivers {
		c.kubernetesName(at("drivers", i), d)
	}
	for i, d := range a.DeviceClasses {
		c.kubernetesName(at("deviceClasses", i, "name"), d.Name)
		c.kubernetesName(at("deviceClasses", i, "driver"), d.Driver)
		names["deviceClasses"] = append(names["deviceClasses"], d.Name)
	}
	for i, key := range a.Tolerate {
		c.qualifiedName(at("tolerate", i), key, false)
	}
	distinct(c, field+".resources", names["resources"])
	distinct(c, field+".drivers", a.Drivers)
	distinct(c, field+".deviceClasses", names["deviceClasses"])
	distinct(c, field+".tolerate", a.Tolerate)
}

// qualified is the last part of what Kubernetes calls a qualified name.
var qualified = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// qualifiedName complains about what is no key of labels and taints, and no name of an extended resource, which always has a domain.
func (c check) qualifiedName(field, name string, domain bool) {
	prefix, last, ok := strings.Cut(name, "/")
	if !ok {
		prefix, last = "", name
	}
	switch {
	case name == "":
		c.complain(field, "is missing")
	case domain && !ok:
		c.complain(field, "%q has no domain: an extended resource is DOMAIN/NAME, such as google.com/tpu", clip(name))
	case ok && !isHost(prefix) || !qualified.MatchString(last):
		c.complain(field, "%q is not a qualified name: want DOMAIN/NAME, such as google.com/tpu", clip(name))
	}
}

// source checks what a pool's endpoints are read from.
func (c check) source(field string, pool *Pool) {
	from := pool.From
	field += ".from"
	orDefault(&from.Kind, FromService)
	c.oneOf(field+".kind", string(from.Kind), string(FromService), string(FromServiceImport), string(FromInferencePool))
	c.kubernetesName(field+".namespace", from.Namespace)
	c.kubernetesName(field+".name", from.Name)
	c.onlyWith(field+".port", from.Port != "", from.Kind != FromInferencePool, "Services and ServiceImports, and an InferencePool says its ports itself")
}

// kubernetesName complains about what no Kubernetes object can be called.
func (c check) kubernetesName(field, name string) {
	switch {
	case name == "":
		c.complain(field, "is missing")
	case !isHost(name):
		c.complain(field, "%q is not the name of a Kubernetes object", clip(name))
	}
}

// poolsCanBeRead complains about a pool that is to be read from a cluster which does not say how.
func (p *parsing) poolsCanBeRead() {
	for i := range p.set.Services {
		s := &p.set.Services[i]
		for j, pool := range s.Spec.Pools {
			cl, ok := p.set.Cluster(pool.Cluster)
			if pool.From == nil || !ok || cl.Spec.Kubernetes != nil || p.of(KindCluster, string(pool.Cluster)).doc.wasMisread("spec.kubernetes") {
				continue
			}
			p.of(KindService, string(s.Metadata.Name)).complain(fmt.Sprintf("spec.pools[%d].from", j), "Cluster %s does not say how its API server is reached: set its spec.kubernetes", pool.Cluster)
		}
	}
}
