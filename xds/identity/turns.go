package identity

import (
	"context"
	"net/netip"
	"sync"

	"golang.org/x/sync/semaphore"
)

// turns bound what is done at a time, in all and for one address: whoever asks for more waits for themselves, and does not
// keep others from it.
type turns struct {
	// Set once. The semaphore guards itself.
	all  *semaphore.Weighted
	each int64

	mu    sync.Mutex
	peers map[netip.Addr]*waiter // under mu: addresses that ask or wait
}

// waiter is one address's share.
type waiter struct {
	turns *semaphore.Weighted
	users int // under turns.mu: those that have it in hand
}

func newTurns(all, each int64) *turns {
	return &turns{all: semaphore.NewWeighted(all), each: each, peers: map[netip.Addr]*waiter{}}
}

// take waits for a turn, and gives what ends it.
func (t *turns) take(ctx context.Context, from netip.Addr) (done func(), err error) {
	w := t.hold(from)
	if err := w.turns.Acquire(ctx, 1); err != nil {
		t.drop(from, w)
		return nil, err
	}
	if err := t.all.Acquire(ctx, 1); err != nil {
		w.turns.Release(1)
		t.drop(from, w)
		return nil, err
	}
	return func() {
		t.all.Release(1)
		w.turns.Release(1)
		t.drop(from, w)
	}, nil
}

// hold finds an address's share, new where there was none.
func (t *turns) hold(from netip.Addr) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.peers[from]
	if w == nil {
		w = &waiter{turns: semaphore.NewWeighted(t.each)}
		t.peers[from] = w
	}
	w.users++
	return w
}

// drop forgets a share that nobody has in hand.
func (t *turns) drop(from netip.Addr, w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.users--; w.users == 0 {
		delete(t.peers, from)
	}
}
