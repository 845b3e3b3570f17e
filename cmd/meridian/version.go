package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

// version is set when the binary is built.
var version = "dev"

func newVersion() *cobra.Command {
	c := &cobra.Command{Use: "version", Short: "Say which Meridian this is", Example: "  meridian version\n  meridian version -o json", Args: cobra.NoArgs}
	f := addFormat(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		v := map[string]string{"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
		return f.show(c.OutOrStdout(), v, func(w io.Writer) {
			fmt.Fprintf(w, "meridian %s (%s, %s)\n", v["version"], v["go"], v["platform"])
		})
	}
	return c
}
