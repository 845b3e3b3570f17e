package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/meridian-mesh/meridian/internal/controlplane"
	"github.com/meridian-mesh/meridian/kube"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/serve"
)

func newStatus() *cobra.Command {
	var server string
	c := &cobra.Command{
		Use: "status", Short: "Say which proxies have what, and how much room the pools have", Args: cobra.NoArgs,
		Example: "  meridian status\n  meridian status --server 127.0.0.1:18001 -o json",
	}
	c.Flags().StringVar(&server, "server", "127.0.0.1:18001", "the control plane's HTTP address")
	f := addFormat(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := fetchStatus(c.Context(), server)
		if err != nil {
			return err
		}
		return f.show(c.OutOrStdout(), s, func(w io.Writer) { statusTable(w, s) })
	}
	return c
}

func fetchStatus(ctx context.Context, server string) (controlplane.Status, error) {
	var s controlplane.Status
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server+"/api/v1/status", nil)
	if err != nil {
		return s, usage("--server: %v", err.Error())
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return s, fmt.Errorf("ask the control plane (is `meridian serve` running there?): %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return s, fmt.Errorf("ask the control plane at %s: %s", server, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&s); err != nil {
		return s, fmt.Errorf("read the answer of %s: %w", server, err)
	}
	return s, nil
}

// stateOf is a proxy's state in one word, and whether what it was given is from before the control plane started.
func stateOf(p serve.ProxyStatus) string {
	if p.Stale {
		return string(p.State) + ", stale"
	}
	return string(p.State)
}

// heard is when a cluster's API server last answered.
func heard(c kube.ClusterStatus) string {
	if c.Heard.IsZero() {
		return "never"
	}
	return c.Heard.Format(time.RFC3339)
}

// standing is how far a cluster's word counts, in one word.
func standing(c kube.ClusterStatus) string {
	switch {
	case c.Heard.IsZero():
		return "unknown"
	case c.Stale:
		return "stale"
	case len(c.Problems) > 0:
		return "troubled"
	}
	return "current"
}

func statusTable(w io.Writer, s controlplane.Status) {
	if s.Policies.Hash == "" {
		fmt.Fprintln(w, "policies: none in force")
	} else {
		fmt.Fprintf(w, "policies: %.12s, read %s\n", s.Policies.Hash, s.Policies.Loaded.Format(time.RFC3339))
	}
	if s.Policies.Error != "" {
		fmt.Fprintf(w, "policies NOT in force:\n%s\n", s.Policies.Error)
	}
	for _, r := range s.Retiring {
		fmt.Fprintf(w, "RETIRING, in no policy any more and serving until its requests have ended: %s, about %.0f in flight\n", r.Cluster, r.InFlight)
	}
	for _, v := range s.Stale {
		fmt.Fprintf(w, "STALE, nothing newer is known than what was published %s: %s\n", v.Published.Format(time.RFC3339), v.Viewpoint)
	}
	for _, r := range s.Refused {
		fmt.Fprintf(w, "REFUSED by verify, the last good configuration stays: %s\n", r.Viewpoint)
		for _, v := range r.Violations {
			fmt.Fprintf(w, "  %s\n", v)
		}
	}
	for _, q := range s.Quarantined {
		fmt.Fprintf(w, "QUARANTINED, proxies keep the last good structure: %s\n  %s refused %v at %s: %s\n", q.Viewpoint, q.Proxy, q.Resources, q.At.Format(time.RFC3339), q.Reason)
	}
	fmt.Fprintln(w, "\nPROXY\tVIEWPOINT\tVERSION\tPROTOCOL\tSTATE")
	for _, p := range s.Proxies {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", p.Node, p.Viewpoint, p.Version, p.Protocol, stateOf(p))
		for _, t := range p.Types {
			if t.State == serve.Nacked {
				fmt.Fprintf(w, "  %s refused %v: %s\n", t.Type, t.Resources, t.Refusal)
			}
		}
	}
	if len(s.Clusters) > 0 {
		fmt.Fprintln(w, "\nCLUSTER\tAPI SERVER HEARD\tSTATE")
	}
	for _, c := range s.Clusters {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Cluster, heard(c), standing(c))
		for _, p := range c.Problems {
			fmt.Fprintf(w, "  %s\n", p)
		}
	}
	acceleratorTable(w, s.Accelerators)
	fmt.Fprintln(w, "\nSERVICE\tCLUSTER\tREGION\tHEALTHY\tFREE SLOTS\tREPLICAS THAT FIT")
	for _, p := range s.Pools {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d/%d\t%d/%d\t%s\n", p.Service, p.Cluster, p.Region, p.Healthy, p.Endpoints, p.Free, p.Slots, fitOf(p.Replicas))
	}
}

// fitOf is how many more replicas of a pool's servers would fit, where that is known.
func fitOf(r *world.PoolReplicas) string {
	if r == nil {
		return "-"
	}
	return strconv.FormatInt(r.Fit, 10)
}

// acceleratorTable shows what clusters have of accelerators, and what waits for some.
func acceleratorTable(w io.Writer, all []controlplane.AcceleratorStatus) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w, "\nCLUSTER\tACCELERATOR\tCLASS\tFREE\tPENDING\tUSED\tBARRED")
	for _, a := range all {
		for _, r := range a.Rows {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d/%d\t%d\t%d\t%d\n", a.Cluster, r.Product, r.Class, r.Free, r.Total, r.Pending, r.Used, r.Barred)
		}
		for _, d := range a.Waiting {
			fmt.Fprintf(w, "  %d pods wait for %d of %s, which are free nowhere that they may run\n", d.Pods, d.Devices, d.Resource)
		}
	}
}
