// Package link stands between two regions on one machine: what goes through it takes as long as over the distance, and it
// can fall silent or be cut.
//
// A Link listens at an address of the near side and connects to a target on the far side. Each byte arrives one-way delay
// after it was sent, in order; a connection costs a round trip before its first byte leaves, as TCP's handshake does.
// Ends and resets of a connection travel like bytes do. What crossed is counted per direction: so one can prove that
// nothing did.
//
// It simulates distance, not loss: no retransmission, no slow start; a connection carries at most Window bytes per delay.
// Two things differ from a real network. A caller's connect returns at once, for the near side's kernel answers; the
// round trip is added to the first byte. And while Block lasts, what was sent waits, to arrive on Restore at once where a
// real TCP would retransmit with growing pauses.
//
// The end-to-end tests and the demo run it. The methods of a Link are safe for concurrent use.
package link
