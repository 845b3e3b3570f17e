package world

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/meridian-mesh/meridian/policies"
)

// Tenants are those that a viewpoint's proxies may serve, as comparable text: sorted, each once, joined by "+". Make them
// with MakeTenants.
type Tenants string

// AllTenants are the tenants of proxies that serve everybody.
const AllTenants Tenants = ""

const (
	// MostTenants is how many tenants a viewpoint names at most.
	MostTenants = 64
	// MostTenantBytes is how long the name of one is at most.
	MostTenantBytes = 256
)

// What has a meaning in the text of a viewpoint is escaped in names.
var (
	escapeTenant   = strings.NewReplacer("%", "%25", "+", "%2B", "/", "%2F")
	unescapeTenant = strings.NewReplacer("%25", "%", "%2B", "+", "%2F", "/")
)

// MakeTenants puts names, in any order, into the canonical text. None are AllTenants. The error says which name is empty
// or too long, or that there are too many.
func MakeTenants(names []policies.Tenant) (Tenants, error) {
	if len(names) > MostTenants {
		return "", fmt.Errorf("%d tenants: a viewpoint names at most %d; leave them out to serve all", len(names), MostTenants)
	}
	escaped := make([]string, len(names))
	for i, name := range names {
		if name == "" {
			return "", errors.New("a tenant's name is empty: leave it out")
		}
		if len(name) > MostTenantBytes {
			return "", fmt.Errorf("a tenant's name has %d bytes: at most %d", len(name), MostTenantBytes)
		}
		escaped[i] = escapeTenant.Replace(string(name))
	}
	slices.Sort(escaped)
	return Tenants(strings.Join(slices.Compact(escaped), "+")), nil
}

// List are the tenants' names; none for AllTenants.
func (t Tenants) List() []policies.Tenant {
	if t == AllTenants {
		return nil
	}
	parts := strings.Split(string(t), "+")
	names := make([]policies.Tenant, len(parts))
	for i, p := range parts {
		names[i] = policies.Tenant(unescapeTenant.Replace(p))
	}
	return names
}

// canonical says whether the text is as MakeTenants writes it, and not of AllTenants.
func (t Tenants) canonical() bool {
	again, err := MakeTenants(t.List())
	return err == nil && again == t && t != AllTenants
}
