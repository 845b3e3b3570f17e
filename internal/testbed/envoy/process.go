package envoy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Config configures a Process.
type Config struct {
	// Bootstrap is Envoy's configuration, YAML or JSON. Required.
	Bootstrap []byte
	// Admin is where the bootstrap puts the admin interface. Required.
	Admin netip.AddrPort
	// LogLevel defaults to "warning".
	LogLevel string
	// Concurrency is the number of worker threads. Default 1.
	Concurrency int
}

// Process is one running Envoy.
type Process struct {
	// Set once.
	config Config
	dir    string
	log    *os.File
	exited chan struct{}
	start  chan error

	mu  sync.Mutex
	pid int // under mu; 0 before it runs and after it ended
	err error
}

// Start runs an Envoy and waits until it is ready: it has its first configuration and listens. The caller must end it
// with Stop or Kill. Where it does not become ready before ctx ends, it is ended, and the error has the end of its log.
func Start(ctx context.Context, config Config) (*Process, error) {
	p, err := launch(config)
	if err != nil {
		return nil, err
	}
	if err := p.waitReady(ctx); err != nil {
		tail := p.Log()
		p.Kill()
		return nil, fmt.Errorf("%w; the end of its log:\n%s", err, tail)
	}
	return p, nil
}

func launch(config Config) (*Process, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "meridian-envoy-")
	if err != nil {
		return nil, fmt.Errorf("start Envoy: %w", err)
	}
	p := &Process{config: config, dir: dir, exited: make(chan struct{}), start: make(chan error, 1)}
	bootstrap := filepath.Join(dir, "bootstrap.yaml")
	if err := os.WriteFile(bootstrap, config.Bootstrap, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("start Envoy: %w", err), os.RemoveAll(dir))
	}
	if p.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, errors.Join(fmt.Errorf("start Envoy: %w", err), os.RemoveAll(dir))
	}
	level := config.LogLevel
	if level == "" {
		level = "warning"
	}
	cmd := exec.Command(binary, "-c", bootstrap, "--disable-hot-restart", "--concurrency", fmt.Sprint(max(config.Concurrency, 1)), "--log-level", level)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	go p.run(cmd)
	if err := <-p.start; err != nil {
		return nil, errors.Join(fmt.Errorf("start Envoy: %w", err), p.log.Close(), os.RemoveAll(dir))
	}
	return p, nil
}

// run owns the process from start to end. The death signal is sent when the thread that started it ends, so the thread
// is kept until the process has ended.
func (p *Process) run(cmd *exec.Cmd) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.exited)
	err := cmd.Start()
	if err == nil {
		p.mu.Lock()
		p.pid = cmd.Process.Pid
		p.mu.Unlock()
	}
	p.start <- err
	if err != nil {
		return
	}
	err = cmd.Wait()
	p.mu.Lock()
	p.pid, p.err = 0, err
	p.mu.Unlock()
}

// waitReady polls the admin interface.
func (p *Process) waitReady(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		_, err := p.Get(ctx, "/ready")
		if err == nil {
			return nil
		}
		last = err
		select {
		case <-ctx.Done():
			return fmt.Errorf("the Envoy at %s did not become ready: %w", p.config.Admin, last)
		case <-p.exited:
			return fmt.Errorf("the Envoy ended before it was ready: %w", p.err)
		case <-tick.C:
		}
	}
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Get asks the admin interface.
func (p *Process) Get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.config.Admin.String()+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask Envoy for %s: %w", path, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask Envoy for %s: %w", path, err)
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("ask Envoy for %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return body, fmt.Errorf("ask Envoy for %s: %s: %s", path, response.Status, strings.TrimSpace(string(body)))
	}
	return body, nil
}

// Log is the last part of what the Envoy has logged.
func (p *Process) Log() string {
	const most = 8 << 10
	bytes, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil {
		return ""
	}
	return string(bytes[max(len(bytes)-most, 0):])
}

// signal sends to the process while it runs.
func (p *Process) signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == 0 {
		return nil
	}
	return syscall.Kill(p.pid, s)
}

// Pause freezes the process: its connections stay open and nothing answers.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// Kill ends the process at once, as a crash would.
func (p *Process) Kill() error {
	err := p.signal(syscall.SIGKILL)
	<-p.exited
	return errors.Join(err, p.clean())
}

// Stop asks the process to end, and ends it when it has not after a grace time.
func (p *Process) Stop() error {
	const grace = 3 * time.Second
	err := errors.Join(p.Resume(), p.signal(syscall.SIGTERM))
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return errors.Join(err, p.clean())
	case <-timer.C:
		return errors.Join(err, p.Kill())
	}
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

func (p *Process) clean() error {
	if err := p.log.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return os.RemoveAll(p.dir)
}

// Validate checks a bootstrap with `envoy --mode validate`.
func Validate(ctx context.Context, bootstrap []byte) error {
	binary, err := Binary()
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, binary, "--mode", "validate", "--disable-hot-restart", "--config-yaml", string(bootstrap)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("Envoy refuses the bootstrap: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
