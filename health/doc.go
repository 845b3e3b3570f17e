// Package health says who is up and how much is asked of whom, from signals and time.
//
// Judge is pure: it takes the world, the signals that came in since it last ran and the time, and gives back the facts
// that follow. All that it remembers (streaks, times, smoothed demand) is in the world that it is given, so judging is
// the same in a server, a simulation and a test. Called without signals it does what time alone brings: verdicts and
// loads that nothing renews go stale, and demand that nobody reports fades.
//
// The order of the signals in a call does not matter: those about one thing are worked in by their time, and one that
// is no newer than what is known is ignored. Signals about what the policies do not name are ignored too.
//
// internal/pipeline calls Judge. The signals come from health/probe, health/scrape and xds/report.
package health
