// Package geo says where things are: points and distances on the globe, countries, jurisdictions, and the regions of
// the large clouds.
//
// It is pure: tables and arithmetic, no I/O. All values are immutable and safe for any number of readers. Unknown is
// always visible: the zero Point is invalid, the zero Country and Place are unknown, a name that is in no table is not
// found, so that callers who decide residency can fail closed.
package geo
