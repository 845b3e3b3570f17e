package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/meridian-mesh/meridian/internal/testbed/mesh"
)

// Config configures Run.
type Config struct {
	// Live is told what happens, for people; io.Discard for none. Required.
	Live io.Writer
	// Keep, where given, is called when the acts are over and everything still runs. When it returns everything is ended.
	Keep func(context.Context, *Result) error
}

// demo is a demo under way.
type demo struct {
	live io.Writer
	mesh *mesh.Mesh
}

func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.live, format+"\n", args...)
}

// Run plays the demo. The error is for what kept it from being played; that a check failed is in the result.
func Run(ctx context.Context, config Config) (result *Result, err error) {
	began := time.Now()
	d := &demo{live: config.Live}
	d.say("Starting four clusters in four regions on two continents: an Envoy and two model servers each")
	starting, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	if d.mesh, err = mesh.Start(starting, stage()); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.mesh.Stop()) }()
	result = &Result{Gateways: map[string]string{}}
	for _, act := range []struct {
		title string
		play  func(context.Context) (Check, error)
	}{
		{"Americans at each gateway", d.nearest},
		{"More callers at fra-1 than it has room for", d.spill},
		{"Germans at iad-1 are served in dublin, the nearest in the EU", d.kill},
		{"Dublin recovers", d.recover},
		{"Silence", d.silence},
		{"Germans at iad-1, with no one left in the EU", d.refuse},
		{"The EU recovers", d.again},
	} {
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
