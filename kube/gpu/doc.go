// Package gpu says what accelerators a cluster has, how many of them are free, and how many more replicas of a pod would fit.
// kube hands it what API servers hold; it keeps small values of that, never the objects themselves.
//
// # What is counted
//
// The unit is a device as a pod asks for it: a whole GPU, a MIG partition, or one share of a GPU that is time-sliced. Each is a
// product of its own, so that they are never added up; Row.Shares says how many shares are one device. Devices of DRA drivers are
// counted in whole devices: a GPU of which anything is taken is used, and is Partly used while something of it is left. One
// set of shared counters is one device.
//
// A node that is cordoned, not ready, or tainted (NoSchedule, NoExecute) doesn't count: its devices are Barred. Taints that only
// keep others away from accelerators or from spot capacity are no obstacle to a total, as whoever wants a GPU tolerates them;
// Fits looks at what the pod really tolerates.
//
// A pod that waits for a node is demand: Count and Fits first put all that wait onto the nodes that they may run on, the largest
// first, so that nothing that is free is promised twice. Those that have scheduling gates do not ask yet.
//
// # What is not seen
//
// Pods without accelerators are not kept, so their CPU and memory count as free. Affinity between pods, spreading and ports
// are not looked at, nor are selectors in CEL: a device class stands for the devices of the driver of its name, unless Settings
// say otherwise. So Fits errs on the high side. An extended resource that a device class stands for is not known as one.
//
// Functions have no side effects. An Inventory is one goroutine's, or locked by its owner.
package gpu
