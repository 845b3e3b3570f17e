// Package policies turns the bytes of policy files into a valid Set of kinds, or into diagnostics.
//
// The kinds of meridian.dev/v1alpha1 are the whole of what an operator says to Meridian: Region, Cluster,
// Service, Residency, Traffic and Gateway. Each is Kubernetes-shaped (apiVersion, kind, metadata, spec), so the
// same document is a file today and a custom resource tomorrow.
//
// Parse is pure: it takes names and bytes and gives back a Set whose defaults are filled in and whose references
// all resolve, or every Diagnostic of the run together, each with file, line, column, field and remedy. A Set is
// immutable once returned and safe for any number of readers. Reading files from disk is policies/folder.
package policies
