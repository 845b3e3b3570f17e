// Package schedule does the same thing to many targets again and again: at each target's own interval, spread evenly,
// with bounded concurrency. health/probe and health/scrape are built on it.
//
// A Scheduler's state has one owner, the loop in Run. Update and Stats may be called from any goroutine, before and
// while it runs.
package schedule
