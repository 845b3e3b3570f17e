package stub

import (
	"fmt"
	"net/netip"
	"slices"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// serviceMaker makes the Services.
func (s Shape) serviceMaker() func(int) object {
	return func(i int) object {
		v := &core.Service{TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: s.about('f', i)}
		ip := fmt.Sprintf("192.168.%d.%d", i>>8, i&255)
		v.Name = ServiceName(i)
		v.Spec = core.ServiceSpec{
			Type: core.ServiceTypeClusterIP, ClusterIP: ip, ClusterIPs: []string{ip}, Selector: map[string]string{"app.kubernetes.io/instance": ServiceName(i)},
			Ports: []core.ServicePort{{Name: "http", Port: 8000, TargetPort: intstr.FromString("http"), Protocol: core.ProtocolTCP}}, SessionAffinity: core.ServiceAffinityNone,
		}
		v.ManagedFields = []meta.ManagedFieldsEntry{written("helm", "", v.Spec)}
		return v
	}
}

// about is what the objects of a service say of themselves.
func (s Shape) about(what byte, i int) meta.ObjectMeta {
	return meta.ObjectMeta{
		Namespace: Namespace(i), UID: uid(what, s.Index, i), ResourceVersion: versionText(firstVersion), Generation: 3, CreationTimestamp: born,
		Labels:      map[string]string{"app.kubernetes.io/instance": ServiceName(i), "app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "vllm-stack-2.8.0"},
		Annotations: map[string]string{"meta.helm.sh/release-name": ServiceName(i), "meta.helm.sh/release-namespace": Namespace(i)},
	}
}

// sliceMaker makes an EndpointSlice for each Service.
func (s Shape) sliceMaker() func(int) object {
	pods := s.podMaker()
	return func(i int) object {
		v := &discovery.EndpointSlice{TypeMeta: meta.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}, ObjectMeta: s.about('9', i), AddressType: discovery.AddressTypeIPv4}
		v.Name = ServiceName(i) + "-x7k2p"
		v.Labels[discovery.LabelServiceName], v.Labels[discovery.LabelManagedBy] = ServiceName(i), "endpointslice-controller.k8s.io"
		v.OwnerReferences = []meta.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: ServiceName(i), UID: uid('f', s.Index, i), Controller: new(true), BlockOwnerDeletion: new(true)}}
		v.Ports = []discovery.EndpointPort{{Name: new("http"), Port: new(int32(8000)), Protocol: new(core.ProtocolTCP)}}
		for n := range s.PodsPerService() {
			v.Endpoints = append(v.Endpoints, s.endpoint(pods(i*s.PodsPerService()+n).(*core.Pod)))
		}
		v.ManagedFields = []meta.ManagedFieldsEntry{written("kube-controller-manager", "", map[string]any{"addressType": "", "endpoints": "", "ports": "", "metadata": v.Labels})}
		return v
	}
}

func (s Shape) endpoint(p *core.Pod) discovery.Endpoint {
	zone := "eu-central-1a"
	return discovery.Endpoint{
		Addresses: []string{p.Status.PodIP}, Conditions: discovery.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)}, Zone: &zone, NodeName: &p.Spec.NodeName,
		TargetRef: &core.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
	}
}

// movedEndpoint is a slice of which one endpoint has another address.
func movedEndpoint(o object, number int, to netip.Addr, version int64) object {
	v := *o.(*discovery.EndpointSlice)
	v.ResourceVersion = versionText(version)
	v.Endpoints = slices.Clone(v.Endpoints)
	v.Endpoints[number].Addresses = []string{to.String()}
	return &v
}
