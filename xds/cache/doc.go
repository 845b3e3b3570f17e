// Package cache keeps what is published: for each viewpoint the newest snapshot, and who is told of it.
//
// The loop of internal/pipeline publishes; xds/serve watches each viewpoint once, for all of its streams. A watch holds no
// queue: it is told that something is newer and then takes the newest, so that nobody sees stale steps in between. A Cache is
// safe for concurrent use. A Store keeps the same on disk, so that a control plane which starts with nothing reachable can
// serve what was published last.
package cache
