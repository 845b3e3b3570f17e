package gpu

import (
	"testing"

	core "k8s.io/api/core/v1"
	dra "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meridian-mesh/meridian/world"
)

const nvidia = "gpu.nvidia.com"

// slice is one of so many slices of the pool of a node.
func slice(name, on string, of int64, devices ...dra.Device) *dra.ResourceSlice {
	return &dra.ResourceSlice{ObjectMeta: meta.ObjectMeta{Name: name}, Spec: dra.ResourceSliceSpec{
		Driver: nvidia, Pool: dra.ResourcePool{Name: on, Generation: 1, ResourceSliceCount: of}, NodeName: &on, Devices: devices,
	}}
}

// device0 is a whole H100.
func device0(name string, change ...func(*dra.Device)) dra.Device {
	d := dra.Device{Name: name, Attributes: map[dra.QualifiedName]dra.DeviceAttribute{
		"type": {StringValue: new("gpu")}, "productName": {StringValue: new("NVIDIA H100 80GB HBM3")},
	}}
	for _, c := range change {
		c(&d)
	}
	return d
}

// consumes has a device consume memory of its GPU's counters.
func consumes(set, memory string) func(*dra.Device) {
	return func(d *dra.Device) {
		d.ConsumesCounters = []dra.DeviceCounterConsumption{{CounterSet: set, Counters: map[string]dra.Counter{"memory": {Value: resource.MustParse(memory)}}}}
	}
}

func partition(d *dra.Device) {
	d.Attributes["type"], d.Attributes["profile"] = dra.DeviceAttribute{StringValue: new("mig")}, dra.DeviceAttribute{StringValue: new("3g.40gb")}
}

func shared(memory string, byDefault *resource.Quantity) func(*dra.Device) {
	return func(d *dra.Device) {
		d.AllowMultipleAllocations = new(true)
		d.Capacity = map[dra.QualifiedName]dra.DeviceCapacity{"memory": {Value: resource.MustParse(memory), RequestPolicy: &dra.CapacityRequestPolicy{Default: byDefault}}}
	}
}

func deviceTaint(effect dra.DeviceTaintEffect) func(*dra.Device) {
	return func(d *dra.Device) { d.Taints = []dra.DeviceTaint{{Key: "unhealthy", Effect: effect}} }
}

// halves are a GPU of 80Gi, and its two halves.
func halves(gpu string) []dra.Device {
	return []dra.Device{
		device0(gpu, consumes(gpu, "80Gi")),
		device0(gpu+"-half-0", partition, consumes(gpu, "40Gi")), device0(gpu+"-half-1", partition, consumes(gpu, "40Gi")),
	}
}

func sets(gpus ...string) (all []dra.CounterSet) {
	for _, gpu := range gpus {
		all = append(all, dra.CounterSet{Name: gpu, Counters: map[string]dra.Counter{"memory": {Value: resource.MustParse("80Gi")}}})
	}
	return all
}

// claim is a pod's claim for devices of a class.
func claim(name, class string, count int64) *dra.ResourceClaim {
	c := &dra.ResourceClaim{ObjectMeta: meta.ObjectMeta{Namespace: "models", Name: name, OwnerReferences: []meta.OwnerReference{{Kind: "Pod"}}}}
	c.Spec.Devices.Requests = []dra.DeviceRequest{{Name: "gpus", Exactly: &dra.ExactDeviceRequest{DeviceClassName: class, Count: count, AllocationMode: dra.DeviceAllocationModeExactCount}}}
	return c
}

// allocate gives devices of a node's pool to a claim.
func allocate(c *dra.ResourceClaim, on string, devices ...string) *dra.ResourceClaim {
	c.Status.Allocation = &dra.AllocationResult{}
	for _, d := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, dra.DeviceRequestAllocationResult{Request: "gpus", Driver: nvidia, Pool: on, Device: d})
	}
	return c
}

// given has a claim's allocations be changed.
func given(c *dra.ResourceClaim, change func(*dra.DeviceRequestAllocationResult)) *dra.ResourceClaim {
	for i := range c.Status.Allocation.Devices.Results {
		change(&c.Status.Allocation.Devices.Results[i])
	}
	return c
}

func consumed(memory string) func(*dra.DeviceRequestAllocationResult) {
	return func(r *dra.DeviceRequestAllocationResult) {
		r.ShareID = new(types.UID("s"))
		r.ConsumedCapacity = map[dra.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}
	}
}

func admin(r *dra.DeviceRequestAllocationResult) { r.AdminAccess = new(true) }

// devices is the count of H100s by a driver: total, used, pending, free, partly, barred, barred and used.
func devices(n ...int64) []world.Accelerator {
	return []world.Accelerator{{
		Product: h100, Class: world.Unclassed, Resource: nvidia, Shares: 1, Total: n[0], Used: n[1], Pending: n[2], Free: n[3], Partly: n[4], Barred: n[5], BarredUsed: n[6],
	}}
}

func generation(s *dra.ResourceSlice, n int64) *dra.ResourceSlice {
	s.Spec.Pool.Generation = n
	return s
}

func TestDevices(t *testing.T) {
	n1 := []*core.Node{node("n1", bare)}
	two := slice("s1", "n1", 1, device0("gpu-0"), device0("gpu-1"))
	cut := slice("s1", "n1", 1, append(halves("gpu-0"), halves("gpu-1")...)...)
	cut.Spec.SharedCounters = sets("gpu-0", "gpu-1")
	lent := slice("s1", "n1", 1, device0("gpu-0", shared("80Gi", nil)), device0("gpu-1", shared("80Gi", nil)))
	network := slice("s1", "n1", 1, device0("gpu-0"))
	network.Spec.Driver = "dra.net"
	for name, c := range map[string]struct {
		objects
		want []world.Accelerator
	}{
		"free":                                 {objects{nodes: n1, slices: []*dra.ResourceSlice{two}}, devices(2, 0, 0, 2, 0, 0, 0)},
		"allocated":                            {objects{nodes: n1, slices: []*dra.ResourceSlice{two}, claims: []*dra.ResourceClaim{allocate(claim("a", nvidia, 1), "n1", "gpu-1")}}, devices(2, 1, 0, 1, 0, 0, 0)},
		"to an administrator":                  {objects{nodes: n1, slices: []*dra.ResourceSlice{two}, claims: []*dra.ResourceClaim{given(allocate(claim("a", nvidia, 1), "n1", "gpu-1"), admin)}}, devices(2, 0, 0, 2, 0, 0, 0)},
		"a device that is gone":                {objects{nodes: n1, slices: []*dra.ResourceSlice{two}, claims: []*dra.ResourceClaim{allocate(claim("a", nvidia, 1), "n1", "gpu-7")}}, devices(2, 0, 0, 2, 0, 0, 0)},
		"waited for":                           {objects{nodes: n1, slices: []*dra.ResourceSlice{two}, claims: []*dra.ResourceClaim{claim("a", nvidia, 1)}}, devices(2, 0, 1, 1, 0, 0, 0)},
		"waited for, too many":                 {objects{nodes: n1, slices: []*dra.ResourceSlice{two}, claims: []*dra.ResourceClaim{claim("a", nvidia, 3)}}, devices(2, 0, 0, 2, 0, 0, 0)},
		"of another driver":                    {objects{nodes: n1, slices: []*dra.ResourceSlice{network}}, nil},
		"a cordoned node":                      {objects{nodes: []*core.Node{node("n1", bare, cordoned)}, slices: []*dra.ResourceSlice{two}, claims: []*dra.ResourceClaim{allocate(claim("a", nvidia, 1), "n1", "gpu-1")}}, devices(0, 0, 0, 0, 0, 2, 1)},
		"no node":                              {objects{slices: []*dra.ResourceSlice{two}}, devices(0, 0, 0, 0, 0, 2, 0)},
		"tainted":                              {objects{nodes: n1, slices: []*dra.ResourceSlice{slice("s1", "n1", 1, device0("gpu-0", deviceTaint("NoSchedule")), device0("gpu-1", deviceTaint("NoExecute")), device0("gpu-2", deviceTaint("None")))}}, devices(1, 0, 0, 1, 0, 2, 0)},
		"a pool in two slices":                 {objects{nodes: n1, slices: []*dra.ResourceSlice{slice("s1", "n1", 2, device0("gpu-0")), slice("s2", "n1", 2, device0("gpu-1"))}}, devices(2, 0, 0, 2, 0, 0, 0)},
		"one of two slices is missing":         {objects{nodes: n1, slices: []*dra.ResourceSlice{slice("s1", "n1", 2, device0("gpu-0"))}}, nil},
		"the newest generation":                {objects{nodes: n1, slices: []*dra.ResourceSlice{two, generation(slice("s2", "n1", 1, device0("gpu-0")), 2)}}, devices(1, 0, 0, 1, 0, 0, 0)},
		"the newest, though it is incomplete":  {objects{nodes: n1, slices: []*dra.ResourceSlice{two, generation(slice("s2", "n1", 2, device0("gpu-0")), 2)}}, nil},
		"partitions are whole GPUs":            {objects{nodes: n1, slices: []*dra.ResourceSlice{cut}}, devices(2, 0, 0, 2, 0, 0, 0)},
		"a GPU with a part taken":              {objects{nodes: n1, slices: []*dra.ResourceSlice{cut}, claims: []*dra.ResourceClaim{allocate(claim("a", "mig.nvidia.com", 1), "n1", "gpu-0-half-1")}}, devices(2, 1, 0, 1, 1, 0, 0)},
		"with all parts taken":                 {objects{nodes: n1, slices: []*dra.ResourceSlice{cut}, claims: []*dra.ResourceClaim{allocate(claim("a", "mig.nvidia.com", 2), "n1", "gpu-0-half-0", "gpu-0-half-1")}}, devices(2, 1, 0, 1, 0, 0, 0)},
		"a part waited for opens no other GPU": {objects{nodes: n1, slices: []*dra.ResourceSlice{cut}, claims: []*dra.ResourceClaim{allocate(claim("a", "mig.nvidia.com", 1), "n1", "gpu-0-half-1"), claim("b", "mig.nvidia.com", 1)}}, devices(2, 1, 0, 1, 0, 0, 0)},
		"a share taken":                        {objects{nodes: n1, slices: []*dra.ResourceSlice{lent}, claims: []*dra.ResourceClaim{given(allocate(claim("a", nvidia, 1), "n1", "gpu-0"), consumed("30Gi"))}}, devices(2, 1, 0, 1, 1, 0, 0)},
		"all shares taken":                     {objects{nodes: n1, slices: []*dra.ResourceSlice{lent}, claims: []*dra.ResourceClaim{given(allocate(claim("a", nvidia, 2), "n1", "gpu-0", "gpu-0"), consumed("40Gi"))}}, devices(2, 1, 0, 1, 0, 0, 0)},
	} {
		t.Run(name, func(t *testing.T) { equal(t, c.want, c.inventory().Count().Rows) })
	}
}

// Devices on a network count once, by the first node that can use them.
func TestDevicesOfSeveralNodes(t *testing.T) {
	nodes := []*core.Node{node("n1", bare, cordoned, labelled("rack", "1")), node("n2", bare, labelled("rack", "1"), labelled("karpenter.sh/capacity-type", "spot"))}
	everywhere, rack, perDevice := slice("s", "p", 1, device0("gpu-0")), slice("s", "p", 1, device0("gpu-0")), slice("s", "p", 1, device0("gpu-0"), device0("gpu-1"), device0("gpu-2"))
	everywhere.Spec.NodeName, everywhere.Spec.AllNodes = nil, new(true)
	chosen := &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{expression("rack", core.NodeSelectorOpIn, "1")}}
	rack.Spec.NodeName, rack.Spec.NodeSelector = nil, chosen
	perDevice.Spec.NodeName, perDevice.Spec.PerDeviceNodeSelection = nil, new(true)
	perDevice.Spec.Devices[0].NodeName, perDevice.Spec.Devices[1].NodeSelector = new("n1"), chosen
	spot := func(total, free int64) world.Accelerator {
		return world.Accelerator{Product: h100, Class: world.Spot, Resource: nvidia, Shares: 1, Total: total, Free: free}
	}
	barred := devices(0, 0, 0, 0, 0, 2, 0)[0]
	for name, c := range map[string]struct {
		slice *dra.ResourceSlice
		want  []world.Accelerator
	}{
		"all nodes": {everywhere, []world.Accelerator{spot(1, 1)}}, "those of a rack": {rack, []world.Accelerator{spot(1, 1)}}, "each its own, one none": {perDevice, []world.Accelerator{spot(1, 1), barred}},
	} {
		t.Run(name, func(t *testing.T) {
			i := objects{nodes: nodes, slices: []*dra.ResourceSlice{c.slice}}.inventory()
			equal(t, c.want, i.Count().Rows)
			shape := ShapeOf(&core.PodSpec{}, Settings{}, &claim("a", nvidia, 1).Spec)
			equal(t, int64(1), i.Fits(&shape, nil))
		})
	}
}

func TestDevicesFit(t *testing.T) {
	cut := slice("s1", "n1", 1, append(append(halves("gpu-0"), halves("gpu-1")...), device0("gpu-2"))...)
	cut.Spec.SharedCounters = sets("gpu-0", "gpu-1")
	lent := slice("s2", "n2", 1, device0("gpu-0", shared("80Gi", new(resource.MustParse("10Gi")))))
	settings := Settings{DeviceClasses: map[string]DeviceClass{"h100": {nvidia, h100}, "a100": {nvidia, "NVIDIA-A100"}}}
	i := objects{
		settings: settings, nodes: []*core.Node{node("n1", bare), node("n2", bare)}, slices: []*dra.ResourceSlice{cut, lent},
		claims: []*dra.ResourceClaim{allocate(claim("a", "mig.nvidia.com", 1), "n1", "gpu-0-half-0"), given(allocate(claim("b", nvidia, 1), "n2", "gpu-0"), consumed("30Gi"))},
	}.inventory()
	exactly := func(c *dra.ResourceClaim, change func(*dra.ExactDeviceRequest)) *dra.ResourceClaim {
		change(c.Spec.Devices.Requests[0].Exactly)
		return c
	}
	memory := func(n string) func(*dra.ExactDeviceRequest) {
		return func(r *dra.ExactDeviceRequest) {
			r.Capacity = &dra.CapacityRequirements{Requests: map[dra.QualifiedName]resource.Quantity{"memory": resource.MustParse(n)}}
		}
	}
	either := claim("c", "", 1)
	either.Spec.Devices.Requests = []dra.DeviceRequest{{Name: "gpus", FirstAvailable: []dra.DeviceSubRequest{{DeviceClassName: "a100", Count: 1}, {DeviceClassName: "mig.nvidia.com", Count: 2}}}}
	for name, c := range map[string]struct {
		claim *dra.ResourceClaim
		want  int64
	}{
		"whole GPUs, and shares of one":        {claim("c", nvidia, 1), 2 + 5},
		"two of one node":                      {claim("c", nvidia, 2), 1},
		"three of one node":                    {claim("c", nvidia, 3), 0},
		"partitions":                           {claim("c", "mig.nvidia.com", 1), 3},
		"a share that is large":                {exactly(claim("c", nvidia, 1), memory("20Gi")), 2},
		"all of a node's":                      {exactly(claim("c", nvidia, 1), func(r *dra.ExactDeviceRequest) { r.AllocationMode = dra.DeviceAllocationModeAll }), 5},
		"a class of one's own":                 {claim("c", "h100", 2), 1},
		"a class of one's own, with no device": {claim("c", "a100", 1), 0},
		"the first that can be had":            {either, 1},
		"something else":                       {claim("c", "dra.net", 1), 0},
		"as an administrator":                  {exactly(claim("c", nvidia, 1), func(r *dra.ExactDeviceRequest) { r.AdminAccess = new(true) }), 0},
	} {
		t.Run(name, func(t *testing.T) {
			shape := ShapeOf(&core.PodSpec{}, settings, &c.claim.Spec)
			equal(t, c.want, i.Fits(&shape, nil))
			equal(t, c.want, i.Fits(&shape, nil)) // asking takes nothing
		})
	}
}

// A claim that no pod owns may never be used, so it is no demand. One that is allocated to pods counts once for all of them.
func TestClaimsOfPods(t *testing.T) {
	loose := claim("a", nvidia, 1)
	loose.OwnerReferences = nil
	if kept, ok := ClaimOf(loose, Settings{}); ok {
		t.Errorf("kept %+v", kept)
	}
	uses := func(p *core.Pod) {
		p.Spec.Containers = nil
		p.Spec.ResourceClaims = []core.PodResourceClaim{{Name: "gpus", ResourceClaimName: new("c")}}
	}
	made := func(p *core.Pod) {
		p.Spec.Containers = nil
		p.Status.ResourceClaimStatuses = []core.PodResourceClaimStatus{{Name: "gpus", ResourceClaimName: new("d")}}
	}
	i := objects{
		nodes: []*core.Node{node("n1", bare)}, slices: []*dra.ResourceSlice{slice("s", "n1", 1, append(halves("gpu-0"), device0("gpu-1"))...)},
		pods:   []*core.Pod{pod("a", "n1", "0", uses), pod("b", "n1", "0", uses), pod("c", "n1", "0", made)},
		claims: []*dra.ResourceClaim{allocate(claim("c", nvidia, 1), "n1", "gpu-1"), allocate(claim("d", nvidia, 1), "n1", "gpu-0-half-0")},
	}.inventory()
	name := func(s string) types.NamespacedName { return types.NamespacedName{Namespace: "models", Name: s} }
	equal(t, []world.Holding{
		{Product: h100, Class: world.Unclassed, Resource: nvidia, Shares: 1, Devices: 1},
		{Product: h100 + "-MIG-3g.40gb", Class: world.Unclassed, Resource: nvidia, Shares: 1, Devices: 1},
	}, i.Holds(name("a"), name("b"), name("c")))
}
