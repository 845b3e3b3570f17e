// Package repotest holds the repository's rules as tests: which package may import which, what a pure package may not
// touch, what is documented, how long things get, what the documents may name. It has no code but its tests.
//
// Each rule is a func from a tree of files to what breaks it. TestRepository runs them over this repository,
// TestRulesCatch over small archives in testdata that break one rule each and say in "want" what must be found. A
// failure names the place, the rule and why the rule is there.
package repotest
