package envoy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Config configures a Process.
type Config struct {
	// Bootstrap is Envoy's configuration, YAML or JSON. Required.
	Bootstrap []byte
	// Admin is where the bootstrap puts the admin interface. Required.
	Admin netip.AddrPort
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

// Process is one running Envoy.
type Process struct {
	// Set once, before Start returns.
	admin   netip.AddrPort
	dir     string
	process *os.Process

	// Guards itself.
	log tail

	// Closed when the process has ended; err is set before, and read after.
	exited chan struct{}
	err    error
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
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "meridian-envoy-")
	if err != nil {
		return nil, err
	}
	p := &Process{admin: config.Admin, dir: dir, exited: make(chan struct{})}
	bootstrap := filepath.Join(dir, "bootstrap.yaml")
	if err := os.WriteFile(bootstrap, config.Bootstrap, 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	cmd := exec.Command(binary, config.args(bootstrap)...)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	// A group of its own keeps an interrupt at the terminal from it: whoever started it decides when it ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go p.run(cmd, started)
	if err := <-started; err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, nil
}

// run owns the process from start to end. The kernel sends the death signal when the thread that started the process
// ends, so the thread is kept for as long.
func (p *Process) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.exited)
	err := cmd.Start()
	p.process = cmd.Process
	started <- err
	if err == nil {
		p.err = cmd.Wait()
	}
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
		case <-p.exited:
			return fmt.Errorf("ended before it was ready: %w", p.err)
		case <-tick.C:
		}
	}
}

// Log is the last part of what the Envoy has logged, also after its end.
func (p *Process) Log() string { return p.log.String() }

// Exited is closed when the process has ended, by whatever cause.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// signal sends to the process; one that has ended already is no error.
func (p *Process) signal(s os.Signal) error {
	if err := p.process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to Envoy: %w", s, err)
	}
	return nil
}

// Pause freezes the process: its connections stay open, the kernel accepts new ones, and nothing answers.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// Kill ends the process at once, paused or not, as a crash would. It returns when the process is gone.
func (p *Process) Kill() error {
	err := p.signal(syscall.SIGKILL)
	<-p.exited
	return errors.Join(err, os.RemoveAll(p.dir))
}

// Stop asks the process to end, and kills it when it has not after three seconds.
func (p *Process) Stop() error {
	const grace = 3 * time.Second
	err := errors.Join(p.signal(syscall.SIGTERM), p.Resume())
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
	}
	return errors.Join(err, p.Kill())
}
