package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/meridian-mesh/meridian/plan"
	"github.com/meridian-mesh/meridian/world"
	"github.com/meridian-mesh/meridian/xds/verify"
)

// simulation is what would change.
type simulation struct {
	Changes []plan.Change `json:"changes"`
	// Unserved counts the ways in which requests have nowhere to go afterwards, by what becomes of them.
	ResidencyRefused int `json:"residencyRefused"`
	NoCapacity       int `json:"noCapacity"`
	// Violations are what verify finds in the configuration afterwards.
	Violations []verify.Violation `json:"violations,omitempty"`
}

func newSimulate() *cobra.Command {
	var from, to string
	var clusters, regions []string
	c := &cobra.Command{
		Use: "simulate --policies FOLDER [--fail-cluster CLUSTER] [--fail-region REGION] [--to FOLDER]", Short: "Say what would change if something failed, or if the policies changed",
		Long: `Plan before and after with the planner that serves, and say which requests would go elsewhere, and which would be
refused because nothing inside their boundary is left. Exit code 3 where requests would have nowhere to go.`,
		Example: `  meridian simulate --policies policies/ --fail-cluster fra-1
  meridian simulate --policies policies/ --fail-region frankfurt -o json
  meridian simulate --policies policies/ --to policies.next/`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&from, "policies", "", "folder of policy files as they are (required)")
	c.Flags().StringVar(&to, "to", "", "folder of policy files as they would be")
	c.Flags().StringSliceVar(&clusters, "fail-cluster", nil, "clusters that would fail")
	c.Flags().StringSliceVar(&regions, "fail-region", nil, "regions that would fail")
	f := addFormat(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if from == "" || (to == "" && len(clusters)+len(regions) == 0) {
			return usage("--policies and something to simulate are required: --fail-cluster, --fail-region or --to")
		}
		if to == "" {
			to = from
		}
		s, err := simulate(from, to, clusters, regions)
		if err != nil {
			return err
		}
		if err := f.show(c.OutOrStdout(), s, s.table); err != nil {
			return err
		}
		if s.ResidencyRefused+s.NoCapacity+len(s.Violations) > 0 {
			return finding
		}
		return nil
	}
	return c
}

// simulate plans both worlds and compares.
func simulate(from, to string, clusters, regions []string) (simulation, error) {
	before, err := imagineFolder(from)
	if err != nil {
		return simulation{}, err
	}
	after, err := imagineFolder(to)
	if err != nil {
		return simulation{}, err
	}
	if err := after.fail(clusters, regions); err != nil {
		return simulation{}, err
	}
	s := simulation{Changes: plan.Diff(before.settle(), after.settle())}
	if s.Changes == nil {
		s.Changes = []plan.Change{}
	}
	for _, c := range s.Changes {
		switch c.After {
		case plan.ResidencyRefused:
			s.ResidencyRefused++
		case plan.NoCapacity:
			s.NoCapacity++
		}
	}
	s.Violations, err = after.violations()
	return s, err
}

func (s simulation) table(w io.Writer) {
	if len(s.Changes) == 0 {
		fmt.Fprintln(w, "nothing would change")
	} else {
		fmt.Fprintln(w, "FROM\tSERVICE\tCLASS\tCLUSTER\tBEFORE\tAFTER\tTHEN")
	}
	for _, c := range s.Changes {
		if len(c.Clusters) == 0 { // the same order, of which nothing is up
			fmt.Fprintf(w, "%s\t%s\t%s\t-\t%s\t%s\t%s\n", c.Viewpoint, c.Service, c.Class, c.Before, c.After, c.After)
		}
		for _, cluster := range c.Clusters {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Viewpoint, c.Service, c.Class, cluster.Cluster, positionText(cluster.Before), positionText(cluster.After), c.After)
		}
	}
	for _, v := range s.Violations {
		fmt.Fprintf(w, "REFUSED by verify: %s\n", v)
	}
	if s.ResidencyRefused+s.NoCapacity > 0 {
		fmt.Fprintf(w, "\n%d ways are refused to keep residency, %d have no capacity anywhere\n", s.ResidencyRefused, s.NoCapacity)
	}
}

func positionText(p *plan.Position) string {
	switch {
	case p == nil:
		return "-"
	case p.Role == plan.Serving:
		return fmt.Sprintf("%.0f%%", float64(p.Share)*100/world.ShareTotal)
	case p.Role == plan.Standby:
		return fmt.Sprintf("standby %d", p.Priority)
	}
	return "refused"
}
