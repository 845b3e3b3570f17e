package policies

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// check complains about one object's fields.
type check struct {
	p   *parsing
	doc *document
}

func (p *parsing) of(kind Kind, name string) check {
	return check{p, p.index[string(kind)+"/"+name]}
}

func (c check) complain(field, format string, args ...any) {
	c.p.complain(c.doc, field, fmt.Sprintf(format, args...), "")
}

// reference complains where there is no such object.
func (c check) reference(field string, kind Kind, name string) bool {
	_, there := slices.BinarySearch(c.p.names[kind], name)
	switch {
	case there:
		return true
	case name == "":
		c.complain(field, "is missing: name a %s", kind)
	case c.p.refused[string(kind)+"/"+name]: // what is wrong with it has been said
	case c.p.unreadable:
		c.p.complain(c.doc, field, fmt.Sprintf("there is no %s %q in the files that could be read", kind, clip(name)), nearest(name, c.p.names[kind]))
	default:
		c.p.complain(c.doc, field, fmt.Sprintf("there is no %s %q", kind, clip(name)), nearest(name, c.p.names[kind]))
	}
	return false
}

// oneOf complains where a value is not among those allowed.
func (c check) oneOf(field, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.p.complain(c.doc, field, fmt.Sprintf("%q is not one of %s", clip(value), strings.Join(allowed, ", ")), nearest(value, allowed))
	}
}

// bounds are a default and what is allowed.
type bounds struct{ fallback, low, high int64 }

// between fills in a default where a number was left out (0) and complains where it is out of range.
func between[T int | int64](c check, field string, value *T, b bounds) {
	if *value == 0 && !c.written(field) {
		*value = T(b.fallback)
	}
	if int64(*value) < b.low || int64(*value) > b.high {
		c.complain(field, "%d is outside %d to %d", *value, b.low, b.high)
	}
}

// duration fills in a default where a duration was left out and complains where it is out of range.
func (c check) duration(field string, value *Duration, fallback, low, high time.Duration) {
	if *value == 0 && !c.written(field) {
		*value = Duration(fallback)
	}
	if value.Std() < low || value.Std() > high {
		c.complain(field, "%s is outside %s to %s", *value, low, high)
	}
}

// written says whether a field stands in the document.
func (c check) written(field string) bool {
	_, ok := c.doc.positions[field]
	return ok
}

// addresses complains about those that can't be dialled or are given twice.
func (c check) addresses(field string, all []Address) {
	good := make([]Address, len(all))
	for i, a := range all {
		if c.address(fmt.Sprintf("%s[%d]", field, i), a) {
			good[i] = a
		}
	}
	distinct(c, field, good)
}

// address complains about an address that can't be dialled.
func (c check) address(field string, a Address) bool {
	switch {
	case !a.Address.IsValid():
		c.complain(join(field, "address"), "is missing: give an IP address")
	case a.Address.IsUnspecified() || a.Address.IsMulticast():
		c.complain(join(field, "address"), "%s is not the address of a server", a.Address)
	case a.Address.Is4In6():
		c.complain(join(field, "address"), "%s is an IPv4 address in IPv6 clothing: write %s", a.Address, a.Address.Unmap())
	case a.Address.Zone() != "":
		c.complain(join(field, "address"), "%s has a zone: it means nothing on another machine", a.Address)
	case a.Port == 0:
		c.complain(join(field, "port"), "is missing: give a port from 1 to 65535")
	default:
		return true
	}
	return false
}

// distinct complains where a list holds a value twice. What is missing is for others to complain about.
func distinct[T comparable](c check, field string, values []T) {
	var missing T
	seen := map[T]int{}
	for i, v := range values {
		if v == missing {
			continue
		}
		if before, twice := seen[v]; twice {
			c.complain(fmt.Sprintf("%s[%d]", field, i), "%v is given twice, first as item %d: remove one", v, before)
			continue
		}
		seen[v] = i
	}
}

func orDefault[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})
