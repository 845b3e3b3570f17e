package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/meridian-mesh/meridian/internal/demo"
)

func newDemo() *cobra.Command {
	var keep, kubernetes bool
	c := &cobra.Command{
		Use: "demo", Short: "Show the main job in under two minutes, on simulated regions and real Envoys",
		Long: `Start four simulated clusters on two continents, each with a real Envoy gateway and model servers, drive traffic and
break things: nearest wins, a full cluster spills, a killed one is not noticed, a silent one is left, pinned data is
refused rather than sent abroad. Exit code 0 only if each of those held.

With --kubernetes each cluster has a real API server, in a network namespace of the demo's own: pods come and go, GPUs are
counted, API servers die, a cluster is emptied for maintenance and another removed.`,
		Example: "  meridian demo\n  meridian demo -o json\n  meridian demo --keep\n  meridian demo --kubernetes",
		Args:    cobra.NoArgs,
	}
	c.Flags().BoolVar(&keep, "keep", false, "leave everything running at the end, and say what to try")
	c.Flags().BoolVar(&kubernetes, "kubernetes", false, "give each cluster a real Kubernetes API server, and show what follows from those")
	f := addFormat(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if kubernetes && keep {
			return usage("--keep and --kubernetes: nothing outside of the demo's network namespace reaches it: give one of them")
		}
		if kubernetes {
			if code, done, err := demo.Isolate(); err != nil {
				return err
			} else if done && code != 0 {
				return &exitError{code: code}
			} else if done {
				return nil
			}
		}
		config := demo.Config{Live: c.ErrOrStderr(), Kubernetes: kubernetes}
		if *f == "table" {
			config.Live = c.OutOrStdout()
		}
		if keep {
			config.Keep = func(ctx context.Context, r *demo.Result) error { return keepRunning(ctx, c.ErrOrStderr(), r) }
		}
		r, err := demo.Run(c.Context(), config)
		if err != nil {
			return err
		}
		if err := f.show(c.OutOrStdout(), r, func(w io.Writer) { fmt.Fprintln(w); _ = r.Summary(w) }); err != nil {
			return err
		}
		if r.Failed > 0 {
			return &exitError{code: exitFailed}
		}
		return nil
	}
	return c
}

// keepRunning says what to try, and waits to be interrupted.
func keepRunning(ctx context.Context, out io.Writer, r *demo.Result) error {
	fmt.Fprintf(out, "\n%d passed, %d failed. Everything is still running; interrupt to end it.\n\n", r.Passed, r.Failed)
	for _, name := range slices.Sorted(maps.Keys(r.Gateways)) {
		fmt.Fprintf(out, "  gateway of %s: %s\n", name, r.Gateways[name])
	}
	fmt.Fprintf(out, `
Try, as a German at the gateway of iad-1:

  curl -si %[1]s/v1/chat/completions -H 'content-type: application/json' -H 'x-forwarded-for: 192.0.2.7' \
    -d '{"model":"llama","messages":[{"role":"user","content":"hello"}]}'

and as an American: -H 'x-forwarded-for: 198.51.100.7'. From nowhere that is known: -H 'x-forwarded-for: 198.18.0.7'.
`, r.Gateways["iad-1"])
	<-ctx.Done()
	return nil
}
