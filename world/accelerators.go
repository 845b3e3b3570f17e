package world

import "github.com/meridian-mesh/meridian/policies"

// CapacityClass is how a node was bought, which says how long it may be counted on.
type CapacityClass string

// The classes.
const (
	// Spot nodes can be taken away at any time.
	Spot CapacityClass = "spot"
	// OnDemand nodes stay as long as they are paid for.
	OnDemand CapacityClass = "on-demand"
	// Reserved nodes are paid for whether they are used or not.
	Reserved CapacityClass = "reserved"
	// Unclassed is what no label says, as on machines of one's own.
	Unclassed CapacityClass = "unknown"
)

// Accelerators is what a cluster has of accelerators. It is immutable. All lists are sorted.
type Accelerators struct {
	Rows []Accelerator `json:"rows,omitempty"`
	// Waiting is what pods and claims wait for that is free nowhere where they may run.
	Waiting []AcceleratorDemand `json:"waiting,omitempty"`
	Queues  []Queue             `json:"queues,omitempty"`
}

// Accelerator is what there is of one product in one class. Its unit is a device as a pod asks for it, or a whole device of a DRA driver.
// Total is the sum of Used, Pending and Free; none is ever negative.
type Accelerator struct {
	Product string        `json:"product"`
	Class   CapacityClass `json:"class"`
	// Resource is the extended resource, or the DRA driver.
	Resource string `json:"resource"`
	// Shares is how many units are one device: above 1 where it is shared by time-slicing or MPS.
	Shares int64 `json:"shares"`
	Total  int64 `json:"total"`
	Used   int64 `json:"used"`
	// Pending is what will go to pods that wait for a node.
	Pending int64 `json:"pending"`
	Free    int64 `json:"free"`
	// Partly counts those of Used and Pending that have room for more: partitions that can still be made, or shares.
	Partly int64 `json:"partly"`
	// Barred are on nodes that don't count, or are tainted; BarredUsed counts those of them that are held. They are not in Total.
	Barred     int64 `json:"barred"`
	BarredUsed int64 `json:"barredUsed"`
}

// AcceleratorDemand is what pods or claims wait for.
type AcceleratorDemand struct {
	// Resource is the extended resource, or the kind of a DRA driver's devices.
	Resource string `json:"resource"`
	// Pods are those that wait, or their claims.
	Pods int64 `json:"pods"`
	// Devices is what they ask for together.
	Devices int64 `json:"devices"`
}

// Queue is a ClusterQueue of Kueue: what of a cluster those who queue there may use.
type Queue struct {
	Name string `json:"name"`
	// Cohort are the queues that lend each other what they don't need. What could be borrowed is not counted.
	Cohort string `json:"cohort,omitempty"`
	// Stopped queues admit nothing.
	Stopped bool `json:"stopped,omitempty"`
	// Quotas are those of accelerators, sorted by resource and flavor.
	Quotas []Quota `json:"quotas,omitempty"`
}

// Quota is how much of a resource, in devices, a queue may use of one flavor.
type Quota struct {
	Resource string `json:"resource"`
	Flavor   string `json:"flavor"`
	// Nominal is the queue's own quota.
	Nominal int64 `json:"nominal"`
	// Reserved is what workloads hold that have quota, and Used what those of them hold that are admitted. Both include what is borrowed.
	Reserved int64 `json:"reserved"`
	Used     int64 `json:"used"`
}

// Room is what is left of the quota.
func (q Quota) Room() int64 { return max(q.Nominal-max(q.Reserved, q.Used), 0) }

// Holding is what some pods hold of one product, in the units of Accelerator.
type Holding struct {
	Product  string        `json:"product"`
	Class    CapacityClass `json:"class"`
	Resource string        `json:"resource"`
	Shares   int64         `json:"shares"`
	Devices  int64         `json:"devices"`
}

// PoolReplicas is what a pool's servers hold of accelerators, and how many more of them there could be.
type PoolReplicas struct {
	Service policies.ServiceName `json:"service"`
	// Holds are sorted by product, class, resource and shares.
	Holds []Holding `json:"holds,omitempty"`
	// Fit is how many more replicas, of the shape of those that are there, would find a node now, after all pods that wait already.
	Fit int64 `json:"fit"`
}
