package stub

import (
	"fmt"
	"net/netip"
)

// Shape says what a cluster holds. All pods run and are ready, each asks for one GPU.
type Shape struct {
	// Index tells clusters apart, 0 to 255: it is in names and addresses.
	Index int `json:"index"`
	// Nodes share the pods evenly.
	Nodes int `json:"nodes"`
	// Pods are at most 65,536.
	Pods int `json:"pods"`
	// Services have Pods/Services pods each, at most 100, in one EndpointSlice, and an InferencePool beside it; what is left serves
	// nothing.
	Services int `json:"services"`
}

// mostInSlice is how many endpoints Kubernetes puts into one EndpointSlice.
const mostInSlice = 100

// Check says what is wrong with a shape, or nil.
func (s Shape) Check() error {
	switch {
	case s.Index < 0 || s.Index > 255:
		return fmt.Errorf("cluster %d: there are at most 256 clusters", s.Index)
	case s.Nodes < 0 || s.Pods < 0 || s.Services < 0 || s.Pods > 1<<16:
		return fmt.Errorf("%d nodes, %d pods, %d services: want none or more, and at most 65536 pods", s.Nodes, s.Pods, s.Services)
	case s.Pods > 0 && s.Nodes == 0:
		return fmt.Errorf("%d pods and no node: give them some", s.Pods)
	case s.PodsPerService() > mostInSlice:
		return fmt.Errorf("%d pods a service, but an EndpointSlice holds at most %d: have more services", s.PodsPerService(), mostInSlice)
	}
	return nil
}

// PodsPerService is how many endpoints a service has.
func (s Shape) PodsPerService() int {
	if s.Services == 0 {
		return 0
	}
	return s.Pods / s.Services
}

// serviceOf is whose endpoint a pod is; ok is false where it serves nothing.
func (s Shape) serviceOf(pod int) (service int, ok bool) {
	if each := s.PodsPerService(); each > 0 && pod/each < s.Services {
		return pod / each, true
	}
	return 0, false
}

// gpusPerNode is what the fullest node needs, and at least the eight that machines have.
func (s Shape) gpusPerNode() int64 {
	if s.Nodes == 0 {
		return 8
	}
	return int64(max(8, (s.Pods+s.Nodes-1)/s.Nodes))
}

// Namespace is where a service and its pods are.
func Namespace(service int) string { return fmt.Sprintf("team-%02d", service%10) }

// ServiceName is a service's, and its InferencePool's.
func ServiceName(service int) string { return fmt.Sprintf("llama-%04d", service) }

// address is a pod's first.
func (s Shape) address(pod int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(s.Index), byte(pod >> 8), byte(pod)})
}

// replaced is where the addresses of pods begin that were replaced: the event is in the address.
var replaced = [4]byte{100, 64, 0, 0}

// mostEvents fit into the addresses.
const mostEvents = 1 << 22

// eventAddress is the new address of the pod that an event replaces.
func eventAddress(event int) netip.Addr {
	return netip.AddrFrom4([4]byte{replaced[0], replaced[1] | byte(event>>16), byte(event >> 8), byte(event)})
}

// EventOf is which event gave a pod its address; ok is false for an address that it had from the start.
func EventOf(a netip.Addr) (event int, ok bool) {
	b := a.As4()
	if b[0] != replaced[0] || b[1]&^0x3f != replaced[1] {
		return 0, false
	}
	return int(b[1]&0x3f)<<16 | int(b[2])<<8 | int(b[3]), true
}
