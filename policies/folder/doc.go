// Package folder reads a folder of policy files and watches it: whole valid sets come out, or the reason why not.
//
// Load reads once, for commands. New and Run watch, for the server: each change that leaves the folder valid as a
// whole is handed over as a new Set; one that doesn't changes nothing, the last good Set stays in force, and Status
// says why.
//
// What is read: every *.yaml and *.yml file in the folder and its sub-folders, in the order of their paths. Names that
// begin with ".", "#" or "~" are left out, files and folders alike: they belong to editors, to git, and to Kubernetes,
// which keeps the versions of a mounted ConfigMap in hidden folders. A file may be a symbolic link, a sub-folder may
// not, and only regular files are read, each of at most policies.MaxFileBytes.
//
// What is read belongs together: a folder that changed while it was read is read again. Changes are noticed by the
// file system's events, and by a slow poll where there are none (network file systems, links to files elsewhere, no
// inotify watches left). Events are waited out for a moment, so that a file is rarely read half-written; where it is,
// it is broken, or empty, which is refused too, and what follows repairs it. Writers that rename into place, as
// editors and Kubernetes do, are never seen half-way.
//
// Status is safe for concurrent use. OnSet and OnError are called by Run's own goroutine, one at a time.
package folder
