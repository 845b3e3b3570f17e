// Package report takes Envoy's load reports and turns them into health signals: how many requests of each class enter at
// each viewpoint, where they went, and how they fared.
//
// A Reporter sums over the proxies of a viewpoint, each by its newest report, so that a signal replaces the one before. It
// is safe for concurrent use; signals are handed on from the streams' goroutines,
// one at a time, in the order of their times.
package report
