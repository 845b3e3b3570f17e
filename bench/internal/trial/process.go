package trial

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// roleVariable is the variable by which the parent tells a child what it is.
const roleVariable = "MERIDIAN_BENCH_ROLE"

// Role is what this process is as a child; empty where it is the parent. Nobody but Start sets it.
func Role() string { return os.Getenv(roleVariable) }

// Process is a child.
type Process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Start runs this program again in a role. The caller must Stop it.
func Start(ctx context.Context, role string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	return &Process{cmd, in, bufio.NewReaderSize(out, 1<<20)}, nil
}

// Stop ends the child, by ending its input, and waits until it has ended.
func (p *Process) Stop() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// reply is an answer on its way: a line of JSON.
type reply[A any] struct {
	Error  string `json:"error,omitempty"`
	Answer A      `json:"answer"`
}

// Tell gives an order and waits for the answer. What says which order it is, for errors.
func Tell[O, A any](p *Process, what string, order O) (A, error) {
	var r reply[A]
	line, err := json.Marshal(order)
	if err != nil {
		return r.Answer, fmt.Errorf("%s: %w", what, err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return r.Answer, fmt.Errorf("%s: %w", what, err)
	}
	text, err := p.out.ReadBytes('\n')
	if err != nil {
		return r.Answer, fmt.Errorf("%s: the process ended: %w", what, err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r.Answer, fmt.Errorf("%s: %w", what, err)
	}
	if r.Error != "" {
		return r.Answer, fmt.Errorf("%s: %s", what, r.Error)
	}
	return r.Answer, nil
}

// Obey has a child do what it is told until its input ends.
func Obey[O, A any](ctx context.Context, do func(context.Context, O) (A, error)) error {
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for in.Scan() {
		var o O
		if err := json.Unmarshal(in.Bytes(), &o); err != nil {
			return err
		}
		var r reply[A]
		var err error
		if r.Answer, err = do(ctx, o); err != nil {
			r.Error = err.Error()
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return in.Err()
}
