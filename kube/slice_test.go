package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/world"
)

// slimmed is an EndpointSlice of Service models/llama with one port, http on 8000.
func slimmed(name string, family discovery.AddressType, endpoints ...discovery.Endpoint) *discovery.EndpointSlice {
	return &discovery.EndpointSlice{
		ObjectMeta:  meta.ObjectMeta{Namespace: "models", Name: name, Labels: map[string]string{discovery.LabelServiceName: "llama"}},
		AddressType: family, Endpoints: endpoints,
		Ports: []discovery.EndpointPort{{Name: new("http"), Port: new(int32(8000))}},
	}
}

// at is an endpoint with conditions in the letters of r (ready), s (serving) and t (terminating): true where written large.
func at(address, conditions string) discovery.Endpoint {
	e := discovery.Endpoint{Addresses: []string{address}}
	for _, c := range conditions {
		switch c {
		case 'r', 'R':
			e.Conditions.Ready = new(c == 'R')
		case 's', 'S':
			e.Conditions.Serving = new(c == 'S')
		case 't', 'T':
			e.Conditions.Terminating = new(c == 'T')
		}
	}
	return e
}

var llama = object{policies.FromService, "models", "llama"}

// kept takes slices in.
func kept(all ...*discovery.EndpointSlice) *sliceSet {
	s := &sliceSet{}
	for _, e := range all {
		if k, ok := sliceOf(e, "fra-1"); ok {
			s.put(named{e.Namespace, e.Name}, &k)
		}
	}
	return s
}

// listed are endpoints as text: address and condition.
func listed(found []world.FoundEndpoint) map[string]world.Condition {
	all := map[string]world.Condition{}
	for _, e := range found {
		all[e.Address.String()] = e.Condition
	}
	return all
}

func TestConditions(t *testing.T) {
	for conditions, want := range map[string]world.Condition{
		"":    world.Ready, // what is left out is ready
		"R":   world.Ready,
		"r":   world.Unready,
		"RSt": world.Ready,
		"rSt": world.Unready,
		"rST": world.Terminating,
		"rsT": world.Unready,
		"T":   world.Terminating,
		"rT":  world.Unready, // serving is then as ready is
	} {
		s := kept(slimmed("llama-1", discovery.AddressTypeIPv4, at("10.0.0.1", conditions)))
		if got := s.endpoints(llama, "http")[0].Condition; got != want {
			t.Errorf("%q: %v, want %v", conditions, got, want)
		}
	}
}

func TestEndpointsOfAService(t *testing.T) {
	two := slimmed("llama-2", discovery.AddressTypeIPv4, at("10.0.0.2", "R"))
	two.Ports = append(two.Ports, discovery.EndpointPort{Name: new("metrics"), Port: new(int32(9000))})
	other := slimmed("mistral-1", discovery.AddressTypeIPv4, at("10.0.0.9", "R"))
	other.Labels[discovery.LabelServiceName] = "mistral"
	elsewhere := slimmed("llama-1", discovery.AddressTypeIPv4, at("10.0.0.8", "R"))
	elsewhere.Namespace = "other"
	named := slimmed("llama-n", discovery.AddressTypeFQDN, at("llama.example", "R"))
	for name, c := range map[string]struct {
		slices []*discovery.EndpointSlice
		port   string
		want   map[string]world.Condition
	}{
		"several slices are one service": {
			[]*discovery.EndpointSlice{slimmed("llama-1", discovery.AddressTypeIPv4, at("10.0.0.1", "r")), two, other, elsewhere}, "http",
			map[string]world.Condition{"10.0.0.1:8000": world.Unready, "10.0.0.2:8000": world.Ready},
		},
		"the port is chosen by name": {[]*discovery.EndpointSlice{two}, "metrics", map[string]world.Condition{"10.0.0.2:9000": world.Ready}},
		"or is the only one":         {[]*discovery.EndpointSlice{slimmed("llama-1", discovery.AddressTypeIPv4, at("10.0.0.1", "R"))}, "", map[string]world.Condition{"10.0.0.1:8000": world.Ready}},
		"of two, neither is the one": {[]*discovery.EndpointSlice{two}, "", map[string]world.Condition{}},
		"dual stack counts once": {
			[]*discovery.EndpointSlice{slimmed("llama-4", discovery.AddressTypeIPv4, at("10.0.0.1", "R")), slimmed("llama-6", discovery.AddressTypeIPv6, at("fd00::1", "R"))}, "http",
			map[string]world.Condition{"10.0.0.1:8000": world.Ready},
		},
		"IPv6 alone counts": {
			[]*discovery.EndpointSlice{slimmed("llama-4", discovery.AddressTypeIPv4), slimmed("llama-6", discovery.AddressTypeIPv6, at("fd00::1", "R"))}, "http",
			map[string]world.Condition{"[fd00::1]:8000": world.Ready},
		},
		"what stands in two slices counts once, in its best condition": {
			[]*discovery.EndpointSlice{slimmed("llama-1", discovery.AddressTypeIPv4, at("10.0.0.1", "r")), slimmed("llama-3", discovery.AddressTypeIPv4, at("10.0.0.1", "R"))}, "http",
			map[string]world.Condition{"10.0.0.1:8000": world.Ready},
		},
		"names are no addresses": {[]*discovery.EndpointSlice{named}, "http", map[string]world.Condition{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, listed(kept(c.slices...).endpoints(llama, c.port))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A ServiceImport has slices of all clusters that export the service. Only this cluster's own are in its jurisdiction.
func TestAServiceImportSpeaksForItsOwnClusterOnly(t *testing.T) {
	exported := func(name, cluster, address string) *discovery.EndpointSlice {
		s := slimmed(name, discovery.AddressTypeIPv4, at(address, "R"))
		s.Labels = map[string]string{labelImport: "llama", labelSourceCluster: cluster, discovery.LabelServiceName: "derived"}
		return s
	}
	s := kept(exported("a", "fra-1", "10.0.0.1"), exported("b", "iad-1", "10.9.0.1"), exported("c", "", "10.8.0.1"))
	got := listed(s.endpoints(object{policies.FromServiceImport, "models", "llama"}, "http"))
	if diff := cmp.Diff(map[string]world.Condition{"10.0.0.1:8000": world.Ready}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASliceThatChangesHandsTouchesBothServices(t *testing.T) {
	s := kept(slimmed("x", discovery.AddressTypeIPv4, at("10.0.0.1", "R")))
	moved := slimmed("x", discovery.AddressTypeIPv4, at("10.0.0.1", "R"))
	moved.Labels[discovery.LabelServiceName] = "mistral"
	k, _ := sliceOf(moved, "fra-1")
	touched := s.put(named{"models", "x"}, &k)
	if diff := cmp.Diff([]object{llama, {policies.FromService, "models", "mistral"}}, touched, cmp.AllowUnexported(object{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := s.endpoints(llama, "http"); len(got) != 0 {
		t.Errorf("the first service still has %v", got)
	}
	if touched := s.put(named{"models", "x"}, nil); len(touched) != 1 || len(s.byOwner) != 0 || len(s.byName) != 0 {
		t.Errorf("after it is gone: touched %v, %v", touched, s)
	}
}

func FuzzSliceOf(f *testing.F) {
	f.Add("10.0.0.1", int32(8000), "llama", "fra-1")
	f.Add("", int32(-1), "", "")
	f.Fuzz(func(t *testing.T, address string, port int32, service, cluster string) {
		s := slimmed("x", discovery.AddressTypeIPv4, at(address, ""), discovery.Endpoint{})
		s.Ports[0].Port, s.Labels[discovery.LabelServiceName], s.Labels[labelSourceCluster] = &port, service, cluster
		for _, e := range kept(s).endpoints(object{policies.FromService, "models", service}, "") {
			if !e.Address.IsValid() || e.Address.Port() == 0 || e.Address.Addr().Is4In6() {
				t.Errorf("endpoint %v of %q, %d", e, address, port)
			}
		}
	})
}
