package mesh

import (
	"context"
	"errors"

	"github.com/meridian-mesh/meridian/internal/testbed/envoy"
	"github.com/meridian-mesh/meridian/internal/testbed/modelserver"
)

// Servers are the cluster's model servers.
func (c *Member) Servers() []*modelserver.Server { return c.servers }

// Gateway is the cluster's Envoy.
func (c *Member) Gateway() *envoy.Process { return c.gateway }

// Kill ends a cluster as a power cut would: its gateway gets SIGKILL, its servers' connections are reset and new ones
// refused.
func (c *Member) Kill() error {
	return errors.Join(c.gateway.Kill(), c.KillServers())
}

// KillServers ends the cluster's servers only.
func (c *Member) KillServers() error { return c.fault(modelserver.Fault{Refuse: true}) }

// Silence makes a cluster silent: its gateway is frozen, its servers accept and answer nothing.
func (c *Member) Silence() error {
	return errors.Join(c.gateway.Pause(), c.fault(modelserver.Fault{Hang: true}))
}

// Speak ends a silence.
func (c *Member) Speak() error {
	return errors.Join(c.fault(modelserver.Fault{}), c.gateway.Resume())
}

// Revive starts what Kill ended.
func (c *Member) Revive(ctx context.Context) error {
	if err := c.fault(modelserver.Fault{}); err != nil {
		return err
	}
	return c.startGateway(ctx)
}

// ReviveServers starts what KillServers ended.
func (c *Member) ReviveServers() error { return c.fault(modelserver.Fault{}) }

func (c *Member) fault(f modelserver.Fault) error {
	var errs []error
	for _, s := range c.servers {
		errs = append(errs, s.SetFault(f))
	}
	return errors.Join(errs...)
}

// Bytes is how much the cluster's servers have received for inference.
func (c *Member) Bytes() int64 {
	var sum int64
	for _, s := range c.servers {
		sum += s.Bytes()
	}
	return sum
}
