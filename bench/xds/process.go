package main

import (
	"context"
	"fmt"

	"github.com/meridian-mesh/meridian/bench/internal/trial"
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
	Address string `json:"address,omitempty"`
	// At is when a change was about to be made, in Unix nanoseconds.
	At int64 `json:"at,omitempty"`
	// Usage is what the process has used so far.
	Usage trial.Usage `json:"usage"`
	// Arrivals are when each client had the change, in Unix nanoseconds.
	Arrivals []int64 `json:"arrivals,omitempty"`
}

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
	return trial.Obey(ctx, a.do)
}

// tell gives a child an order and waits for the answer.
func tell(p *trial.Process, o order) (answer, error) { return trial.Tell[order, answer](p, o.Do, o) }
