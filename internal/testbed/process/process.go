package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is one running program.
type Process struct {
	// Set once, before Start returns.
	name    string
	process *os.Process

	// Guards itself.
	log tail

	// Closed when the process has ended; err is set before, and read after.
	exited chan struct{}
	err    error
}

// Start runs a command. The caller must end it with Stop or Kill. name is for errors.
func Start(name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{name: name, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	// A group of its own keeps an interrupt at the terminal from it: whoever started it decides when it ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go p.run(cmd, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
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

// Pid is the process's number.
func (p *Process) Pid() int { return p.process.Pid }

// Log is the last part of what the process has logged, also after its end.
func (p *Process) Log() string { return p.log.String() }

// Exited is closed when the process has ended, by whatever cause.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err is how the process ended. It waits for that.
func (p *Process) Err() error {
	<-p.exited
	return p.err
}

// signal sends to the process; one that has ended already is no error.
func (p *Process) signal(s os.Signal) error {
	if err := p.process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", s, p.name, err)
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
	return err
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
