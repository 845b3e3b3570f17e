package mesh

import (
	"context"
	"net/netip"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/link"
)

// connect puts the wide area before each gateway: a link that is as long as the way from the region of whoever connects.
// Without delays there is none.
func (m *Mesh) connect(run context.Context) error {
	if m.config.Delay == nil {
		return nil
	}
	for _, c := range m.clusters {
		l, err := link.New(link.Config{Listen: netip.AddrPortFrom(c.source, 0), Target: c.eastWest, DelayFrom: func(caller netip.Addr) time.Duration {
			return m.delay(caller, c.Region)
		}})
		if err != nil {
			return err
		}
		c.link, c.wide = l, l.Addr()
		m.running.Go(func() error { return l.Run(run) })
	}
	return nil
}

// delay is the one-way delay from wherever an address is.
func (m *Mesh) delay(caller netip.Addr, to string) time.Duration {
	for _, c := range m.clusters {
		if c.source == caller {
			return m.config.Delay(c.Region, to)
		}
	}
	return 0
}

// BytesFromAbroad is how much has come to the cluster's gateway from others, over all connections; 0 without delays.
func (c *Member) BytesFromAbroad() int64 {
	if c.link == nil {
		return 0
	}
	return c.link.BytesToTarget()
}
