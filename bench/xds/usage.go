package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// usage is what a process has used.
type usage struct {
	CPU   time.Duration `json:"cpu"`
	Alloc uint64        `json:"alloc"` // bytes allocated since the start
	Heap  uint64        `json:"heap"`  // bytes in use after a collection
	RSS   uint64        `json:"rss"`
	Peak  uint64        `json:"peak"` // of RSS, since it was last reset
}

// used reads this process's usage; collect first clears what is no longer in use.
func used(collect bool) (usage, error) {
	if collect {
		runtime.GC()
		runtime.GC() // what finalizers let go of in the first
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return usage{}, fmt.Errorf("getrusage: %w", err)
	}
	u := usage{CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano()), Alloc: m.TotalAlloc, Heap: m.HeapAlloc}
	var err error
	if u.RSS, err = memory("VmRSS"); err != nil {
		return u, err
	}
	u.Peak, err = memory("VmHWM")
	return u, err
}

// memory is one of the sizes that the kernel knows of this process, in bytes.
func memory(name string) (uint64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kib uint64
		if _, err := fmt.Sscanf(line, name+": %d kB", &kib); err == nil {
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no %s", name)
}

// resetPeak lets the peak of the resident set begin anew (proc(5), clear_refs).
func resetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
