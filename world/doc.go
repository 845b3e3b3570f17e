// Package world holds what is known at one instant, and the one writer that moves it to the next.
//
// A World is an immutable snapshot: the policy set in force, the viewpoints that proxies have, the pools with what is
// known of each endpoint, the demand seen, the shares in force and the time. Facts are plain values; Writer.Commit
// folds a batch of them into a new World and says in a Delta what changed, sharing with the old World all that did
// not, so that comparing pointers is a valid change check.
//
// A Writer has one owner, the loop of internal/pipeline. A World is safe for any number of readers, who must not
// change what it hands out. Nothing here reads a clock, waits, or does I/O.
package world
