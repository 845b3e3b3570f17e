package main

import (
	"github.com/spf13/cobra"

	"github.com/meridian-mesh/meridian/policies"
)

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of policy files, for editors", Args: cobra.NoArgs,
		Example: "  meridian schema > meridian.schema.json",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(policies.Schema())
			return err
		},
	}
}
