package main

import "github.com/spf13/cobra"

// newRoot makes the command tree.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "meridian",
		Short: "Send each inference request to the nearest healthy cluster with free capacity, inside its boundary",
		Long: `Meridian programs Envoys in many clusters as one place to run inference: nearest healthy cluster first, spill when
it is full, failover when it dies, and pinned data inside its jurisdiction whatever fails.

Exit codes: 0 all is well; 1 what was asked for failed; 2 called wrongly; 3 validate or simulate found something.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newServe(), newValidate(), newExplain(), newSimulate(), newBootstrap(), newStatus(), newDemo(), newSchema(), newVersion())
	return root
}
