// Package trial is what benchmarks do alike that measure programs from outside: they run themselves again as children, so that CPU and heap
// are of one part alone, tell them what to do, and read what they have used.
package trial
