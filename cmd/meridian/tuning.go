package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/meridian-mesh/meridian/internal/controlplane"
)

// addTuning offers what mostly is right as it is: how changes are merged and rolled out, and what one client may use.
func addTuning(c *cobra.Command, config *controlplane.Config) {
	f, t := c.Flags(), &config.Serving
	f.DurationVar(&config.Quiet, "merge-quiet", 10*time.Millisecond, "how long to wait for further changes while they keep coming; the first goes at once")
	f.DurationVar(&config.MaxMerge, "merge-max", 20*time.Millisecond, "how long a change may be held back for merging at most")
	f.DurationVar(&config.MostRetiring, "retire-timeout", 10*time.Minute, "how long a cluster that is removed from the policies is kept for requests that do not end, after it was drained")
	f.Float64Var(&t.CanaryShare, "canary-share", 0.05, "part of a viewpoint's proxies that get new configuration first, at least one; 1: all at once")
	f.DurationVar(&t.CanaryTimeout, "canary-timeout", time.Second, "how long the other proxies wait for the canaries' answers")
	f.DurationVar(&t.SendTimeout, "send-timeout", 30*time.Second, "how long a proxy may take to read a response before it is cut off")
	f.DurationVar(&t.MaxConnectionAge, "max-connection-age", 30*time.Minute, "when a proxy is asked to connect anew, within a tenth, so that load spreads over replicas")
	f.IntVar(&t.Limits.StreamsPerIdentity, "max-streams-per-identity", 1000, "streams that one identity may have")
	f.IntVar(&t.Limits.Names, "max-names-per-stream", 100_000, "resources of one type that a stream may name")
	f.Float64Var(&t.Limits.RequestsPerSecond, "max-requests-per-second", 200, "requests of a stream that are read in the long run")
}
