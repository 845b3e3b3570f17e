// Package cache keeps what is published: for each viewpoint the newest snapshot, and who watches it.
//
// The loop of internal/pipeline publishes; each stream of xds/serve watches one viewpoint. A watch holds no queue: it is
// poked and then takes the newest snapshot, so a slow reader costs what a fast one costs and never sees stale steps in
// between. Publishing costs one non-blocking poke a watch. A Cache is safe for concurrent use.
package cache
