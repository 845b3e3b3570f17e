package envoy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/process"
)

// Config configures a Process.
type Config struct {
	// Bootstrap is Envoy's configuration, YAML or JSON. Required.
	Bootstrap []byte
	// Admin is where the bootstrap puts the admin interface. Required.
	Admin netip.AddrPort
	// Version is that of the Envoy to run. Default: what Binary finds.
	Version string
	// LogLevel is trace, debug, info, warning, error or critical. Default "warning".
	LogLevel string
	// ComponentLog sets levels for single components, as "upstream:debug,router:trace".
	ComponentLog string
	// Concurrency is the number of worker threads. Default 1.
	Concurrency int
}

// args is Envoy's command line. Hot restart is off: it would share memory between Envoys of one machine.
func (c Config) args(bootstrap string) []string {
	level := c.LogLevel
	if level == "" {
		level = "warning"
	}
	args := []string{"-c", bootstrap, "--disable-hot-restart", "--concurrency", strconv.Itoa(max(c.Concurrency, 1)), "--log-level", level}
	if c.ComponentLog != "" {
		args = append(args, "--component-log-level", c.ComponentLog)
	}
	return args
}

func (c Config) binary() (string, error) {
	if c.Version == "" {
		return Binary()
	}
	return BinaryOf(c.Version)
}

// Process is one running Envoy.
type Process struct {
	*process.Process

	// Set once, before Start returns.
	admin netip.AddrPort
	dir   string
}

// Start runs an Envoy and waits until it is ready: it has its first configuration and listens. The caller must end it
// with Stop or Kill. Where it does not become ready before ctx ends, it is ended, and the error has its log.
func Start(ctx context.Context, config Config) (*Process, error) {
	p, err := launch(config)
	if err != nil {
		return nil, fmt.Errorf("start Envoy: %w", err)
	}
	if err := p.waitReady(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start Envoy: %w; its log:\n%s", err, p.Log()), p.Kill())
	}
	return p, nil
}

// launch starts the process in a folder of its own.
func launch(config Config) (*Process, error) {
	binary, err := config.binary()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "meridian-envoy-")
	if err != nil {
		return nil, err
	}
	bootstrap := filepath.Join(dir, "bootstrap.yaml")
	if err := os.WriteFile(bootstrap, config.Bootstrap, 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	running, err := process.Start("Envoy", exec.Command(binary, config.args(bootstrap)...))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Process{Process: running, admin: config.Admin, dir: dir}, nil
}

// waitReady polls the admin interface.
func (p *Process) waitReady(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		last := p.Ready(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready at %s: %w", p.admin, errors.Join(ctx.Err(), last))
		case <-p.Exited():
			return fmt.Errorf("ended before it was ready: %w", p.Err())
		case <-tick.C:
		}
	}
}

// Kill ends the process at once, paused or not, as a crash would. It returns when the process is gone.
func (p *Process) Kill() error { return errors.Join(p.Process.Kill(), os.RemoveAll(p.dir)) }

// Stop asks the process to end, and kills it when it has not after three seconds.
func (p *Process) Stop() error { return errors.Join(p.Process.Stop(), os.RemoveAll(p.dir)) }
