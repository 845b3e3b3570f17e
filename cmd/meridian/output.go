package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// format is how a result is shown.
type format string

// addFormat gives a command the flag -o.
func addFormat(c *cobra.Command) *format {
	f := format("table")
	c.Flags().VarP(&f, "output", "o", "how to show the result: table, json or yaml")
	return &f
}

// String, Set and Type make format a flag.
func (f *format) String() string { return string(*f) }

// Set takes the flag's value.
func (f *format) Set(s string) error {
	switch s {
	case "table", "json", "yaml":
		*f = format(s)
		return nil
	}
	return fmt.Errorf("%q is not table, json or yaml", s)
}

// Type names the flag's type in help.
func (f *format) Type() string { return "format" }

// show writes a result: as data, or as the table that the function writes.
func (f *format) show(out io.Writer, v any, table func(w io.Writer)) error {
	switch *f {
	case "json":
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(v)
	case "yaml":
		bytes, err := yaml.Marshal(v)
		if err != nil {
			return fmt.Errorf("write YAML: %w", err)
		}
		_, err = out.Write(bytes)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	table(w)
	return w.Flush()
}
