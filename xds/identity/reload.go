package identity

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Run follows the files until the context ends, and then returns nil. It is to be called once. It reads them each time
// rather than asking for events: they are small, and links swapped by Kubernetes, files renamed over one another and
// network file systems are then all the same.
func (c *Credentials) Run(ctx context.Context) error {
	tick := time.NewTicker(c.config.Poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.look()
		}
	}
}

// look takes up changed files once they have been the same for two looks: a certificate and its key are written one after
// the other.
func (c *Credentials) look() {
	found, bundles, err := c.config.read()
	if err != nil {
		c.tell(err)
		return
	}
	now := found.digest()
	settled := now == c.seen
	c.seen = now
	if now == c.inForce {
		c.told = ""
		return
	}
	if !settled {
		return
	}
	m, err := c.config.parse(found, bundles)
	if err != nil {
		c.tell(err)
		return
	}
	c.current.Store(m)
	c.inForce, c.told = now, ""
	c.reloads.Add(1)
	c.config.Log.Info("new TLS files are in force", "certificateExpires", m.expires, "trustDomains", m.bundles.Len())
}

// tell counts and logs why the files of now are not in force; the same error again is no news.
func (c *Credentials) tell(err error) {
	if err.Error() == c.told {
		return
	}
	c.told = err.Error()
	c.reloadErrs.Add(1)
	c.config.Log.Error("TLS files can't be used: the last good ones stay in force", "error", fmt.Errorf("TLS: %w", err))
}

// sampler lets something be done once a second at most, so that a flood of failures is no flood of log lines.
type sampler struct {
	last atomic.Int64 // Unix nanoseconds
}

func (s *sampler) do(act func()) {
	now, last := time.Now().UnixNano(), s.last.Load()
	if now-last >= int64(time.Second) && s.last.CompareAndSwap(last, now) {
		act()
	}
}
