// Package demo is the main job of Meridian in under two minutes, on one machine: four simulated clusters on two
// continents, a real Envoy gateway in each, model servers with real queues, delays like real ones. It drives traffic,
// breaks things, and checks what callers saw.
//
// Run starts everything, plays the acts in order, and ends everything. Each act is a check with counts; the same result is
// text for people and data for programs.
package demo
