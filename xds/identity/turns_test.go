package identity

import (
	"context"
	"net/netip"
	"testing"
)

// One address waits for itself, and others go on; when all is done nothing is remembered of either.
func TestTurnsAreShared(t *testing.T) {
	greedy, other := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	turns := newTurns(3, 2)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	take := func(ctx context.Context, from netip.Addr) func() {
		t.Helper()
		done, err := turns.take(ctx, from)
		if err != nil {
			t.Fatalf("%s gets no turn: %v", from, err)
		}
		return done
	}
	first, second := take(t.Context(), greedy), take(t.Context(), greedy)
	if _, err := turns.take(over, greedy); err == nil {
		t.Error("an address has more than its share")
	}
	third := take(t.Context(), other)
	if _, err := turns.take(over, other); err == nil {
		t.Error("there are more turns than in all")
	}
	first()
	fourth := take(t.Context(), other)
	for _, done := range []func(){second, third, fourth} {
		done()
	}
	if len(turns.peers) > 0 {
		t.Errorf("%d addresses are remembered that ask nothing", len(turns.peers))
	}
	take(t.Context(), greedy)()
}
