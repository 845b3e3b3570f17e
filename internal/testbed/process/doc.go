// Package process runs the real programs of the testbed: start, freeze, stop, kill, and keep the last words.
//
// A process ends with the program that started it, however that dies: the kernel sees to it, so nothing survives a crashed
// test. All methods are safe for concurrent use.
package process
