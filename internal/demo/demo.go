package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
	"github.com/meridian-mesh/meridian/internal/testbed/netns"
)

// Config configures Run.
type Config struct {
	// Live is told what happens, for people; io.Discard for none. Required.
	Live io.Writer
	// Kubernetes gives each cluster a real API server, and shows what follows from those. It needs Isolate.
	Kubernetes bool
	// Keep, where given, is called when the acts are over and everything still runs. When it returns everything is ended.
	Keep func(context.Context, *Result) error
}

// podAddresses are what servers that Kubernetes lists have: it takes no loopback ones.
var podAddresses = netip.MustParsePrefix("10.0.0.1/8")

// Isolate makes sure that the program runs in a network namespace in which pods have addresses. In the first process it runs the
// program anew in one, and says that all is done, with the exit code to end with; in that second one it has nothing more to do.
func Isolate() (code int, done bool, err error) { return netns.Enter(podAddresses) }

// act is one thing that is shown, and checked.
type act struct {
	title string
	play  func(context.Context) (Check, error)
}

// demo is a demo under way.
type demo struct {
	live io.Writer
	mesh *mesh.Mesh
}

func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.live, format+"\n", args...)
}

// acts are those of a demo whose clusters are lists of servers.
func (d *demo) acts() []act {
	return []act{
		{"Americans at each gateway", d.nearest},
		{"More callers at fra-1 than it has room for", d.spill},
		{"Germans at iad-1 are served in dublin, the nearest in the EU", d.kill},
		{"Dublin recovers", d.recover},
		{"Silence", d.silence},
		{"Germans at iad-1, with no one left in the EU", d.refuse},
		{"The EU recovers", d.again},
	}
}

// Run plays the demo. The error is for what kept it from being played; that a check failed is in the result.
func Run(ctx context.Context, config Config) (result *Result, err error) {
	began := time.Now()
	d := &demo{live: config.Live}
	d.say("Starting four clusters in four regions on two continents: an Envoy and two model servers each")
	staged, acts := stage(), d.acts()
	if staged.Kubernetes = config.Kubernetes; config.Kubernetes {
		acts = d.kubernetesActs()
		d.say("Each has a real Kubernetes API server, too")
	}
	starting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if d.mesh, err = mesh.Start(starting, staged); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.mesh.Stop()) }()
	result = &Result{Gateways: map[string]string{}}
	for _, act := range acts {
		d.say("%s", act.title)
		check, err := act.play(ctx)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, fmt.Errorf("%s: %w", act.title, err)
		}
		result.add(check)
	}
	result.Seconds = time.Since(began).Seconds()
	if config.Keep == nil {
		return result, nil
	}
	for _, m := range d.mesh.Members() {
		result.Gateways[m.Name] = "http://" + m.HTTP.String()
	}
	return result, config.Keep(ctx, result)
}
