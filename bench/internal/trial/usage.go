package trial

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Usage is what a process has used.
type Usage struct {
	// CPU is the time since the start, in user and kernel.
	CPU time.Duration `json:"cpu"`
	// Alloc counts bytes allocated since the start.
	Alloc uint64 `json:"alloc"`
	// Heap is bytes in use, dead ones included unless they were collected.
	Heap uint64 `json:"heap"`
	// RSS is the resident set, in bytes.
	RSS uint64 `json:"rss"`
	// Peak is the most that RSS has been, since ResetPeak.
	Peak uint64 `json:"peak"`
}

// Used reads this process's usage; collect first clears what is no longer in use.
func Used(collect bool) (Usage, error) {
	if collect {
		runtime.GC()
		runtime.GC() // what finalizers let go of in the first
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return Usage{}, fmt.Errorf("getrusage: %w", err)
	}
	u := Usage{CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano()), Alloc: m.TotalAlloc, Heap: m.HeapAlloc}
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

// ResetPeak lets the peak of the resident set begin anew (proc(5), clear_refs).
func ResetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
