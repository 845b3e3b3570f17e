package gpu

import (
	"slices"
	"strings"
)

// Settings say what counts beyond what is well known. The zero value is good for the drivers of NVIDIA, AMD and Intel.
type Settings struct {
	// Resources are further extended resources that count devices.
	Resources []Resource
	// Drivers are further DRA drivers of accelerators. Those whose name begins with gpu., npu., tpu. or gaudi. are known.
	Drivers []string
	// DeviceClasses say by name what the operator's own device classes select.
	DeviceClasses map[string]DeviceClass
	// Tolerate are keys of taints that those who want accelerators tolerate, so that a node with them counts.
	Tolerate []string
}

// Resource is an extended resource whose unit is a device.
type Resource struct {
	// Name is that of the resource: google.com/tpu.
	Name string
	// ProductLabel is the label of nodes that says what device it is. Without it the product is the resource's name.
	ProductLabel string
}

// DeviceClass is what a DeviceClass selects, in words that need no CEL.
type DeviceClass struct {
	// Kind is the name of a driver, for its whole devices, or mig. and the driver's domain for MIG devices: mig.nvidia.com.
	Kind string
	// Product is the only one that it selects, as Row has it. Empty selects any.
	Product string
}

// counts tells whether the unit of an extended resource is a device.
func (s Settings) counts(resource string) bool {
	switch resource {
	case resourceNVIDIA, resourceShared, resourceAMD:
		return true
	}
	if kind, ok := strings.CutPrefix(resource, prefixIntel); ok {
		return !slices.ContainsFunc(notDevices, func(part string) bool { return strings.Contains(kind, part) })
	}
	return strings.HasPrefix(resource, prefixMIG) || s.configured(resource) != nil
}

func (s Settings) configured(resource string) *Resource {
	i := slices.IndexFunc(s.Resources, func(r Resource) bool { return r.Name == resource })
	if i < 0 {
		return nil
	}
	return &s.Resources[i]
}

// drives tells whether a DRA driver is one of accelerators. There are drivers of networks and CPUs too.
func (s Settings) drives(driver string) bool {
	first, _, _ := strings.Cut(driver, ".")
	return slices.Contains([]string{"gpu", "npu", "tpu", "gaudi"}, first) || slices.Contains(s.Drivers, driver)
}

// selects finds what a device class stands for; ok is false where that is no accelerator.
func (s Settings) selects(class string) (c DeviceClass, ok bool) {
	if c, ok = s.DeviceClasses[class]; ok {
		return c, true
	}
	return DeviceClass{Kind: class}, s.drives(class) || strings.HasPrefix(class, "mig.")
}
