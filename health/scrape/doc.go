// Package scrape reads how loaded model servers are from their Prometheus metrics.
//
// A Scraper fetches each target's metrics again and again, with bounded concurrency, and hands on a health.Scraped for
// each attempt. Parse turns the text of one answer into a load, and expects hostile input. The command wires a
// Scraper to internal/pipeline.
package scrape
