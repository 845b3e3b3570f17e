package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/meridian-mesh/meridian/policies"
)

// role is a flag that takes the role of a proxy.
type role policies.Role

// addRole gives a command the flag --role.
func addRole(c *cobra.Command, r *role) {
	*r = role(policies.RoleGateway)
	c.Flags().Var(r, "role", "the proxy's role: gateway or sidecar")
}

// String, Set and Type make role a flag.
func (r *role) String() string { return string(*r) }

// Set takes the flag's value.
func (r *role) Set(s string) error {
	switch policies.Role(s) {
	case policies.RoleGateway, policies.RoleSidecar:
		*r = role(s)
		return nil
	}
	return errors.New("want gateway or sidecar")
}

// Type names the flag's type in help.
func (r *role) Type() string { return "role" }
