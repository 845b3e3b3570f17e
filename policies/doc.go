// Package policies turns the bytes of policy files into a valid Set of kinds, or into diagnostics.
//
// The kinds of meridian.dev/v1alpha1 are the whole of what an operator says to Meridian: Region, Cluster,
// Service, Residency, Traffic and Gateway. Each is Kubernetes-shaped (apiVersion, kind, metadata, spec), so the
// same document is a file today and a custom resource tomorrow.
//
// Files are read strictly, because a guess about a residency rule could be wrong: unknown and duplicate fields, values
// of another type, numbers that are not plain decimals, references to nothing, and rules that contradict each other
// are errors. So are YAML aliases: a document is never larger in memory than it was written. A file has at most
// MaxFileBytes, and is not empty; a document nests at most 32 deep.
//
// Parse is pure: it takes names and bytes and gives back a Set whose defaults are filled in and whose references
// all resolve, or every Diagnostic of the run together, each with file, line, column, field and remedy. A Set is
// immutable once returned and safe for any number of readers. Reading files from disk is policies/folder.
package policies
