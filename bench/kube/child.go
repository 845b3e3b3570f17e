package main

import (
	"context"
	"fmt"

	"github.com/meridian-mesh/meridian/bench/internal/trial"
)

// order is what the parent tells a child.
type order struct {
	Do string `json:"do"`
	// Size is what the clusters hold, and Policies for how many of them and of their services there are policies: so a reader of
	// empty clusters has the same to look for.
	Size     size `json:"size"`
	Policies size `json:"policies"`
	// Folder is where kubeconfigs are.
	Folder string `json:"folder,omitempty"`
	// Address is where the control plane is.
	Address string `json:"address,omitempty"`
	// Profile is the file of a profile.
	Profile string `json:"profile,omitempty"`
}

// answer is what a child answers. Times are in Unix nanoseconds.
type answer struct {
	Address string      `json:"address,omitempty"`
	Usage   trial.Usage `json:"usage"`
	// Began and Ready are when reading began and when all was known.
	Began int64 `json:"began,omitempty"`
	Ready int64 `json:"ready,omitempty"`
	// Sent counts objects, SentAt is when the last was.
	Sent   int64 `json:"sent,omitempty"`
	SentAt int64 `json:"sent_at,omitempty"`
	// Events are when each happened, or arrived; 0: it has not.
	Events []int64 `json:"events,omitempty"`
}

// actor does what a child is told.
type actor interface {
	do(context.Context, order) (answer, error)
	end() error
}

// child obeys until its input ends.
func child(ctx context.Context, role string) error {
	roles := map[string]actor{"clusters": &host{}, "meridian": &watcher{}, "informers": &informing{}, "plane": &plane{}, "proxies": &proxies{}}
	a, ok := roles[role]
	if !ok {
		return fmt.Errorf("no such role: %s", role)
	}
	if err := trial.Obey(ctx, a.do); err != nil {
		return err
	}
	return a.end()
}

// unknown is an order that a child does not know.
func unknown(o order) (answer, error) { return answer{}, fmt.Errorf("no such order: %s", o.Do) }

// usageOf answers with what this process has used.
func usageOf(o order) (answer, error) {
	u, err := trial.Used(o.Do == "usage after collection")
	return answer{Usage: u}, err
}
