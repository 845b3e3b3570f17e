package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/meridian-mesh/meridian/policies"
	"github.com/meridian-mesh/meridian/policies/folder"
	"github.com/meridian-mesh/meridian/xds/verify"
)

// validation is what validate shows.
type validation struct {
	Valid       bool                  `json:"valid"`
	Hash        string                `json:"hash,omitempty"`
	Objects     map[string]int        `json:"objects,omitempty"`
	Diagnostics []policies.Diagnostic `json:"diagnostics,omitempty"`
	// Violations are what verify finds in the configuration that the policies give.
	Violations []verify.Violation `json:"violations,omitempty"`
}

func newValidate() *cobra.Command {
	c := &cobra.Command{
		Use: "validate FOLDER", Short: "Check a folder of policy files, and the configuration that follows from it",
		Long: `Check a folder of policy files as serve would read it, then plan, build and verify the configuration for every
gateway. Every problem of a run is reported together. Exit code 3 where there is any.`,
		Example: "  meridian validate policies/\n  meridian validate -o json policies/",
		Args:    folderOnly,
	}
	f := addFormat(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		v, err := validate(args[0])
		if err != nil {
			return err
		}
		if err := f.show(c.OutOrStdout(), v, v.table); err != nil {
			return err
		}
		if !v.Valid {
			return finding
		}
		return nil
	}
	return c
}

func folderOnly(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("name the folder of policy files, and nothing else")
	}
	return nil
}

// validate reads a folder. The error is for a folder that can't be read at all.
func validate(dir string) (validation, error) {
	set, err := folder.Load(dir)
	var diagnostics policies.Diagnostics
	if errors.As(err, &diagnostics) {
		return validation{Diagnostics: diagnostics}, nil
	}
	if err != nil {
		return validation{}, err
	}
	v := validation{Valid: true, Hash: set.Hash, Objects: map[string]int{
		"regions": len(set.Regions), "clusters": len(set.Clusters), "services": len(set.Services),
		"residencies": len(set.Residencies), "traffics": len(set.Traffics), "gateways": len(set.Gateways)}}
	v.Violations, err = imagine(set).violations()
	v.Valid = len(v.Violations) == 0
	return v, err
}

func (v validation) table(w io.Writer) {
	for _, d := range v.Diagnostics {
		fmt.Fprintln(w, d)
	}
	for _, violation := range v.Violations {
		fmt.Fprintln(w, violation)
	}
	if !v.Valid {
		fmt.Fprintf(w, "%d problems\n", len(v.Diagnostics)+len(v.Violations))
		return
	}
	fmt.Fprintf(w, "valid: %d regions, %d clusters, %d services, %d residency rules, %d traffic policies, %d gateways\n", v.Objects["regions"],
		v.Objects["clusters"], v.Objects["services"], v.Objects["residencies"], v.Objects["traffics"], v.Objects["gateways"])
}
