// Package pipeline is the one loop that drives Meridian: signals and facts in, published snapshots out.
//
// A Pipeline owns the world's Writer and the memos of plan, build and verify; one goroutine, Run's, touches them. The
// edges hand in what they learn through methods that never block: the inbox keeps the newest value per source and key,
// so it is bounded by the number of things there are to know. The first change after a quiet time is worked in at once;
// a stream of changes is merged, up to a bound. Readers take State, an immutable picture of the last cycle.
//
// What serves is what is tested: the command, simulate, the demo, bench and the feature tests all drive this loop.
package pipeline
