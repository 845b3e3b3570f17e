package main

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

// order is what the parent tells a child, one JSON line each.
type order struct {
	Do string `json:"do"`
	// Size and Address come with the first order.
	Size    size   `json:"size"`
	Address string `json:"address,omitempty"`
	// Side is which server a server is.
	Side string `json:"side,omitempty"`
	// Profile is the file of a CPU profile.
	Profile string `json:"profile,omitempty"`
}

// answer is what a child answers to an order.
type answer struct {
	Error   string `json:"error,omitempty"`
	Address string `json:"address,omitempty"`
	// At is when a change was about to be made, in Unix nanoseconds.
	At int64 `json:"at,omitempty"`
	// Usage is what the process has used so far.
	Usage usage `json:"usage"`
	// Arrivals are when each client had the change, in Unix nanoseconds.
	Arrivals []int64 `json:"arrivals,omitempty"`
}

// process is a child.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start runs this program again in a role.
func start(ctx context.Context, role string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childRole+"="+role)
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
	return &process{cmd, in, bufio.NewReaderSize(out, 1<<20)}, nil
}

// tell gives an order and waits for the answer.
func (p *process) tell(o order) (answer, error) {
	line, err := json.Marshal(o)
	if err != nil {
		return answer{}, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return answer{}, fmt.Errorf("%s: %w", o.Do, err)
	}
	reply, err := p.out.ReadBytes('\n')
	if err != nil {
		return answer{}, fmt.Errorf("%s: the process ended: %w", o.Do, err)
	}
	var a answer
	if err := json.Unmarshal(reply, &a); err != nil {
		return answer{}, fmt.Errorf("%s: %w", o.Do, err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("%s: %s", o.Do, a.Error)
	}
	return a, nil
}

// stop ends the child: it ends when its input does.
func (p *process) stop() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// actor does what a child is told.
type actor interface {
	do(context.Context, order) (answer, error)
	end()
}

// child obeys until its input ends.
func child(ctx context.Context, role string) error {
	var a actor
	switch role {
	case "server":
		a = &host{}
	case "clients":
		a = &crowd{}
	default:
		return fmt.Errorf("no such role: %s", role)
	}
	defer a.end()
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for in.Scan() {
		var o order
		if err := json.Unmarshal(in.Bytes(), &o); err != nil {
			return err
		}
		reply, err := a.do(ctx, o)
		if err != nil {
			reply.Error = err.Error()
		}
		if err := out.Encode(reply); err != nil {
			return err
		}
	}
	return in.Err()
}
