// Package fetch asks servers over HTTP for one thing, in bounded time and memory, and says in few words what went
// wrong. health/probe and health/scrape ask with it. A Client is safe for concurrent use.
package fetch
